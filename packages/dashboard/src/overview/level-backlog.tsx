import type { LevelView, StateCounts } from '@baton/protocol'
import { useEffect } from 'preact/hooks'
import { atLeast, compact, exact } from '../parts/format.ts'
import { add, measureOf, Segments } from '../parts/states.tsx'
import { levelsOfTask, tasksWithMoreLevels, unfinishedTasks, wantLevels } from '../service/tasks.ts'
import { totals, unfinishedCount } from '../service/totals.ts'

const LEVELS_SHOWN = 8

/** The backlog of each level over all unfinished tasks. Level 0 goes first in every task. */
export function LevelBacklog() {
  const taskIds = unfinishedTasks.value.map(({ taskId }) => taskId)
  useLevelsOf(taskIds)
  const read = taskIds.flatMap((taskId) => {
    const levels = levelsOfTask.value.get(taskId)
    return levels === undefined ? [] : [levels]
  })
  const rows = backlogByLevel(read.flat())
  const isWhole = read.length >= unfinishedCount.value && totals.value.isExact
  const hasMore = taskIds.some((taskId) => tasksWithMoreLevels.value.has(taskId))
  const largest = Math.max(1, ...rows.map(({ left }) => left))
  const shown = rows.slice(0, LEVELS_SHOWN)
  return (
    <section class="panel" aria-labelledby="backlog-title">
      <header class="panel-head">
        <h2 id="backlog-title">Backlog by level</h2>
        <p class="muted">
          records
          {isWhole
            ? ''
            : `, ${exact(read.length)} of ${atLeast(exact(unfinishedCount.value), totals.value.isExact)} tasks`}
        </p>
      </header>
      {shown.length === 0 ? (
        <p class="quiet">{isWhole ? 'Nothing waits.' : 'Not read yet.'}</p>
      ) : (
        <ol class="backlog">
          {shown.map(({ level, left, counts }) => (
            <li key={level}>
              <span class="backlog-name">Level {level}</span>
              <span class="backlog-track" aria-hidden="true">
                <span class="bar" style={{ width: `${Math.max(1.5, (left / largest) * 100)}%` }}>
                  <Segments counts={counts} />
                </span>
              </span>
              <span class="number" title={exact(left)}>
                {compact(left)}
              </span>
            </li>
          ))}
        </ol>
      )}
      {rows.length > shown.length ? (
        <p class="quiet">
          and {rows.length - shown.length} {hasMore ? 'or more higher' : 'higher'} levels
        </p>
      ) : null}
    </section>
  )
}

/** Loads the levels of all these tasks, including those that a filter hides. */
function useLevelsOf(taskIds: readonly string[]): void {
  useEffect(() => {
    const unwanted = taskIds.map(wantLevels)
    return () => {
      for (const unwant of unwanted) unwant()
    }
  }, [JSON.stringify(taskIds)])
}

function backlogByLevel(levels: readonly LevelView[]) {
  const byLevel = new Map<number, StateCounts>()
  for (const level of levels) {
    const counts = unfinishedPart(measureOf(level))
    const known = byLevel.get(level.level)
    byLevel.set(level.level, known === undefined ? counts : add(known, counts))
  }
  return [...byLevel]
    .map(([level, counts]) => ({ level, counts, left: counts.total }))
    .filter(({ left }) => left > 0)
    .sort((a, b) => a.level - b.level)
}

function unfinishedPart(counts: StateCounts): StateCounts {
  return { ...counts, total: counts.total - counts.done - counts.cancelled, done: 0, cancelled: 0 }
}
