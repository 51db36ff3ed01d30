import { type Figure, quotient, type Row } from '../report/model.ts'
import type { PeerContender } from './peer.ts'

interface Comparison {
  subject: string
  beside: string
  atLeast?: number
}

/**
 * Baton beside each peer doing the same work; without a goal where it is only to be seen: the other side
 * keeps less of what it confirmed, or has another form for the same work that the goal is set on.
 */
const comparisons: readonly Comparison[] = [
  { subject: 'baton-sqlite/one by one', beside: 'bullmq/one by one', atLeast: 1 },
  { subject: 'baton-sqlite/one by one', beside: 'bullmq/everysec' },
  { subject: 'baton-sqlite/worker', beside: 'bullmq/one by one' },
  { subject: 'baton-sqlite/worker', beside: 'bullmq/everysec' },
  { subject: 'baton-sqlite/one by one', beside: 'nats/one by one', atLeast: 1 },
  { subject: 'baton-sqlite/one by one', beside: 'graphile-worker/plain', atLeast: 1 },
  { subject: 'baton-sqlite/one by one', beside: 'beanstalkd/one by one' },
  { subject: 'baton-sqlite/one exchange', beside: 'beanstalkd/one by one', atLeast: 1 },
  { subject: 'baton-sqlite/one exchange', beside: 'beanstalkd/pipelined' },
  { subject: 'baton-sqlite/batches', beside: 'nats/consume', atLeast: 1 },
  { subject: 'baton-sqlite/batches', beside: 'nats/consume, confirmed' },
  { subject: 'baton-sqlite/batches', beside: 'graphile-worker/local queue' },
  { subject: 'baton-postgres/one by one', beside: 'hand-written/one by one', atLeast: 1.5 },
  { subject: 'baton-postgres/one by one', beside: 'pg-boss/one by one', atLeast: 4 },
  { subject: 'baton-postgres/one by one', beside: 'graphile-worker/plain', atLeast: 2 },
  { subject: 'baton-postgres/worker', beside: 'graphile-worker/plain' },
  { subject: 'baton-postgres/batches', beside: 'hand-written/batches', atLeast: 0.8 },
  { subject: 'baton-postgres/batches', beside: 'graphile-worker/local queue' },
]

/** Those of which both sides were measured in this run. */
export function comparisonFigures(contenders: readonly PeerContender[], rows: readonly Row[]): Figure[] {
  const find = (id: string) => {
    const index = contenders.findIndex((contender) => contender.id === id)
    return index === -1 ? undefined : rows[index]
  }
  return comparisons.flatMap(({ subject, beside, atLeast }) => {
    const [ours, theirs] = [find(subject), find(beside)]
    if (!ours || !theirs) return []
    return quotient(
      `${ours.label} ÷ ${theirs.label}`,
      ours,
      theirs,
      atLeast === undefined ? undefined : { atLeast },
    )
  })
}
