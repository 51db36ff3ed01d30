import type { ComponentChildren } from 'preact'
import { compact, counted, exact, perSecond } from '../parts/numbers.ts'
import { duration } from '../parts/times.ts'
import { hrefOf } from '../route.ts'
import { liveState } from '../service/live.ts'
import { tasks, tasksLoad, unfinishedBeyond, unfinishedTasks } from '../service/tasks.ts'
import { longestEta, pace, totals } from './totals.ts'

/** The five numbers that answer the operator's question. */
export function Figures() {
  const isKnown = tasksLoad.value === 'loaded' || tasks.value.size > 0
  return (
    <section class="figures" aria-label="Totals" aria-busy={!isKnown}>
      {isKnown ? <KnownFigures /> : <UnknownFigures />}
    </section>
  )
}

function KnownFigures() {
  const { records, recordsLeft, partitionsLeft, leased, leasedRecords, parked, tasks: count } = totals.value
  const beyond = unfinishedBeyond.value ? ' (the newest)' : ''
  const eta = longestEta.value
  return (
    <>
      <Figure name={names.pace} value={perSecond(pace.value)} live>
        {paceNote()}
      </Figure>
      <Figure name={names.left} value={compact(recordsLeft)} title={exact(recordsLeft)}>
        of {compact(records)} in {counted(count, 'unfinished task')}
        {beyond}
      </Figure>
      <Figure name={names.hand} value={compact(leasedRecords)} title={exact(leasedRecords)}>
        records, {counted(leased, 'partition')} of {compact(partitionsLeft)} left
      </Figure>
      <Figure name={names.eta} value={eta === null ? '–' : duration(eta)}>
        {etaNote()}
      </Figure>
      <Figure name={names.parked} value={exact(parked)} alarming={parked > 0}>
        {parked === 0 ? (
          'nothing waits for you'
        ) : (
          <a href={hrefOf({ page: 'overview', state: 'parked', search: '' })}>
            {parked === 1 ? 'partition needs you' : 'partitions need you'}
          </a>
        )}
      </Figure>
    </>
  )
}

/** A nought would be a claim. */
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
  hand: 'In hand',
  eta: 'All done in',
  parked: 'Parked',
} as const

function paceNote(): string {
  if (pace.value !== null) return 'over the last seconds'
  return liveState.value === 'live' ? 'being measured' : 'not connected'
}

function etaNote(): string {
  if (longestEta.value !== null) return 'at the present pace'
  return unfinishedTasks.value.some(({ state }) => state === 'open')
    ? 'not known for every task'
    : 'nothing is running'
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
