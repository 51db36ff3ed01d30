import type { ComponentChildren } from 'preact'
import { compact, counted, exact, perSecond } from '../parts/numbers.ts'
import { duration } from '../parts/times.ts'
import { hrefOf } from '../route.ts'
import { tasksLoad, unfinishedBeyond } from '../service/tasks.ts'
import { longestEta, pace, totals } from './totals.ts'

/** The five numbers that answer the operator's question. */
export function Figures() {
  const { records, recordsLeft, partitionsLeft, leased, leasedRecords, parked, tasks } = totals.value
  const isLoading = tasksLoad.value === 'loading'
  const beyond = unfinishedBeyond.value ? ' (the newest)' : ''
  const eta = longestEta.value
  return (
    <section class="figures" aria-label="Totals" aria-busy={isLoading}>
      <Figure name="Records per second" value={isLoading ? '–' : perSecond(pace.value)} live>
        over the last seconds
      </Figure>
      <Figure name="Records left" value={compact(recordsLeft)} title={exact(recordsLeft)}>
        of {compact(records)} in {counted(tasks, 'unfinished task')}
        {beyond}
      </Figure>
      <Figure name="In hand" value={compact(leasedRecords)} title={exact(leasedRecords)}>
        records, {counted(leased, 'partition')} of {compact(partitionsLeft)} left
      </Figure>
      <Figure name="All done in" value={eta === null ? '–' : duration(eta)}>
        {eta === null ? 'not known for every task' : 'at the present pace'}
      </Figure>
      <Figure name="Parked" value={exact(parked)} alarming={parked > 0}>
        {parked === 0 ? (
          'nothing waits for you'
        ) : (
          <a href={hrefOf({ page: 'overview', state: 'parked', search: '' })}>
            {parked === 1 ? 'partition needs you' : 'partitions need you'}
          </a>
        )}
      </Figure>
    </section>
  )
}

interface FigureProps {
  readonly name: string
  readonly value: string
  readonly title?: string
  readonly alarming?: boolean
  readonly live?: boolean
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
