import { ATTEMPTS_KEPT, type EndedAttempt, finishedAttempt } from '../rules/attempt-history.ts'
import type { TaskFacts } from '../rules/task-facts.ts'
import type { PartitionRecord } from './partition-record.ts'
import { shownPartition } from './shown-state.ts'

/** An attempt as people see it: one that runs has neither end nor outcome. */
export type ShownAttempt = Omit<EndedAttempt, 'endedAt' | 'outcome'> & {
  readonly endedAt: number | null
  readonly outcome: EndedAttempt['outcome'] | null
}

/** The attempts of a partition, oldest first, up to the one that runs or has finished it. */
export function shownAttempts(facts: TaskFacts, record: PartitionRecord): ShownAttempt[] {
  const { outcome, holder, leasedAt, history } = record
  const { state, attempts } = shownPartition(facts, record)
  const shown: ShownAttempt[] = [...(history ?? [])]
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
