import { ATTEMPTS_KEPT, type EndedAttempt, finishedAttempt } from '../rules/attempt-history.ts'
import type { TaskFacts } from '../rules/task-facts.ts'
import type { PartitionRecord } from './records.ts'
import { partitionView } from './view-state.ts'

/** An attempt as shown to users. A running attempt has no end and no outcome. */
export type AttemptView = Omit<EndedAttempt, 'endedAt' | 'outcome'> & {
  readonly endedAt: number | null
  readonly outcome: EndedAttempt['outcome'] | null
}

/** The attempts of a partition, oldest first, including the running or successful attempt. */
export function attemptViews(facts: TaskFacts, record: PartitionRecord): AttemptView[] {
  const { outcome, holder, leasedAt, history } = record
  const { state, attempts } = partitionView(facts, record)
  const shown: AttemptView[] = [...(history ?? [])]
  if (state === 'leased')
    shown.push({
      attempt: attempts,
      holder,
      startedAt: leasedAt ?? 0,
      endedAt: null,
      outcome: null,
      reason: null,
      records: null,
    })
  else if (state === 'done' && (outcome === 'done' || outcome === 'delivered'))
    shown.push(finishedAttempt(record, outcome))
  return shown.slice(-ATTEMPTS_KEPT)
}
