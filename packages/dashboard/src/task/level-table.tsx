import type { LevelView, TaskView } from '@baton/protocol'
import { compact, counted, exact, percent } from '../parts/numbers.ts'
import { Scrolling } from '../parts/scrolling.tsx'
import { measureOf, SplitBar } from '../parts/split-bar.tsx'
import { hrefOf, type Route } from '../route.ts'

export function LevelTable({ view, at }: { view: TaskView; at: Extract<Route, { page: 'task' }> }) {
  return (
    <section class="panel" aria-labelledby="levels-title">
      <header class="panel-head">
        <h2 id="levels-title">Levels</h2>
        <p class="muted">lowest goes first</p>
      </header>
      <Scrolling label="Rows of levels" kind="level-rows">
        <table class="levels">
          <thead>
            <tr>
              <th scope="col">Level</th>
              <th scope="col" class="level-progress">
                Progress
              </th>
              <th scope="col" class="number">
                Done
              </th>
              <th scope="col" class="number">
                Records
              </th>
              <th scope="col" class="number wide-only">
                Partitions
              </th>
              <th scope="col" class="number wide-only">
                Leased
              </th>
              <th scope="col" class="number">
                Parked
              </th>
            </tr>
          </thead>
          <tbody>
            {view.levels.map((level) => (
              <LevelRow key={level.level} level={level} at={at} />
            ))}
          </tbody>
        </table>
      </Scrolling>
      {view.levelsOmitted > 0 ? <p class="quiet">and {counted(view.levelsOmitted, 'higher level')}</p> : null}
    </section>
  )
}

function LevelRow({ level, at }: { level: LevelView; at: Extract<Route, { page: 'task' }> }) {
  const counts = measureOf(level)
  const isFinished = counts.total === counts.done + counts.cancelled
  const parkedHref = hrefOf({ ...at, state: 'parked', level: level.level })
  return (
    <tr>
      <th scope="row">
        <a href={hrefOf({ ...at, level: level.level })}>{level.level}</a>
        {level.open || isFinished ? null : <span class="tag">held</span>}
      </th>
      <td class="level-progress">
        <SplitBar counts={counts} label={`Level ${level.level}`} />
      </td>
      <td class="number">{percent(counts.done, counts.total)}</td>
      <td class="number" title={exact(level.records.total)}>
        {compact(level.records.total)}
      </td>
      <td class="number wide-only">{exact(level.partitions.total)}</td>
      <td class="number wide-only">{exact(level.partitions.leased)}</td>
      <td class="number">
        {level.partitions.parked === 0 ? (
          '0'
        ) : (
          <a class="alarm" href={parkedHref}>
            {exact(level.partitions.parked)}
          </a>
        )}
      </td>
    </tr>
  )
}
