import type { LevelView, StateCounts } from '@baton/protocol'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { atLeast, compact, counted, duration, exact, perSecond } from '../parts/format.ts'
import { add, measureOf, Segments } from '../parts/states.tsx'
import { hrefOf, overviewRoute } from '../route.ts'
import { isAway, liveState } from '../service/live.ts'
import {
  levelsOfTask,
  tasks,
  tasksLoad,
  tasksWithMoreLevels,
  unfinishedTasks,
  wantLevels,
} from '../service/tasks.ts'
import { longestEta, pace, totals, unfinishedCount } from '../service/totals.ts'

/** The five main figures of the overview. */
export function Figures() {
  const isKnown = tasksLoad.value === 'loaded' || tasks.value.size > 0
  return (
    <section class="figures" aria-label="Totals" aria-busy={!isKnown}>
      {isKnown ? <KnownFigures /> : <UnknownFigures />}
    </section>
  )
}

function KnownFigures() {
  const { records, recordsLeft, partitionsLeft, leased, leasedRecords, isExact } = totals.value
  const eta = isAway.value ? null : longestEta.value
  const floor = isExact ? '' : 'at least '
  return (
    <>
      <Figure name={names.pace} value={perSecond(pace.value)} live>
        {paceNote()}
      </Figure>
      <Figure name={names.left} value={atLeast(compact(recordsLeft), isExact)} title={exact(recordsLeft)}>
        of {floor}
        {compact(records)} in {floor}
        {counted(unfinishedCount.value, 'unfinished task')}
      </Figure>
      <Figure
        name={names.leased}
        value={atLeast(compact(leasedRecords), isExact)}
        title={exact(leasedRecords)}
      >
        records, {floor}
        {counted(leased, 'partition')} of {atLeast(compact(partitionsLeft), isExact)} left
      </Figure>
      <Figure
        name={eta === null || isAllOfIt() ? names.eta : 'Running tasks done in'}
        value={eta === null ? '–' : duration(eta)}
      >
        {etaNote(eta)}
      </Figure>
      <ParkedFigure />
    </>
  )
}

function ParkedFigure() {
  const { parked, isExact } = totals.value
  if (parked === 0) {
    return (
      <Figure name={names.parked} value={isExact ? '0' : '–'}>
        {isExact ? 'nothing needs an operator' : 'not known for every task'}
      </Figure>
    )
  }
  return (
    <Figure name={names.parked} value={atLeast(exact(parked), isExact)} alarming>
      <a href={hrefOf({ ...overviewRoute, state: 'parked' })}>
        {parked === 1 && isExact ? 'partition needs an operator' : 'partitions need an operator'}
      </a>
    </Figure>
  )
}

/** Placeholders while nothing is loaded, because a zero would be wrong. */
function UnknownFigures() {
  return (
    <>
      {Object.values(names).map((name) => (
        <Figure key={name} name={name} value="–" live={name === names.pace}>
          not read yet
        </Figure>
      ))}
    </>
  )
}

const names = {
  pace: 'Records per second',
  left: 'Records left',
  leased: 'Leased',
  eta: 'All done in',
  parked: 'Parked',
} as const

function paceNote(): string {
  if (pace.value !== null) return 'over the last seconds'
  return liveState.value === 'live' ? 'being measured' : 'not connected'
}

/** Whether everything will be done once the running tasks are done. */
function isAllOfIt(): boolean {
  const { stalled, paused, parked } = totals.value
  return stalled + paused + parked === 0
}

function etaNote(eta: number | null): string {
  const { open, paused, parked } = totals.value
  if (eta !== null) {
    const others = [
      ...(parked > 0 ? [`${exact(parked)} parked`] : []),
      ...(paused > 0 ? [counted(paused, 'paused task')] : []),
    ]
    return others.length === 0 ? 'at the current pace' : `except ${others.join(' and ')}`
  }
  if (isAway.value) return 'not connected'
  return open > 0 ? 'not known for every task' : 'nothing is running'
}

interface FigureProps {
  readonly name: string
  readonly value: string
  readonly title?: string
  readonly alarming?: boolean
  readonly live?: boolean | undefined
  readonly children: ComponentChildren
}

function Figure({ name, value, title, alarming, live, children }: FigureProps) {
  return (
    <div class={`figure${alarming ? ' alarming' : ''}${live ? ' live' : ''}`}>
      <p class="figure-name">{name}</p>
      <p class="figure-value" title={title}>
        {value}
      </p>
      <p class="figure-note">{children}</p>
    </div>
  )
}

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
          and {rows.length - shown.length} {hasMore ? 'or more higher levels' : 'higher'} levels
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
