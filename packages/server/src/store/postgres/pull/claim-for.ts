import { type Portion, wouldTake } from '../../../handoff/rules/sharing.ts'
import type { PullOrder } from '../../../handoff/store.ts'
import { WAITS } from '../queues/places.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import { LARGEST_CLAIM } from '../windows/lanes.ts'
import { type Candidate, claimCandidates, front } from './claim.ts'

/** With a record budget nobody knows how many partitions it takes: look at few first, then at more at a time. */
export const FIRST_GUESS = 16

/** What the front of the order holds, whoever has locked it. */
const recordsInFront = statement<{ readonly recordCount: number }>(
  'records-in-front',
  `SELECT p.record_count AS "recordCount" FROM (${front('r.id, r.stay')}) q
   CROSS JOIN LATERAL (SELECT record_count FROM baton.partition WHERE id = q.id AND ${WAITS} OFFSET 0) p LIMIT $1`,
)
const beforeClaim = statement('before-claim', 'SAVEPOINT claim')
const unclaim = statement('unclaim', 'ROLLBACK TO SAVEPOINT claim')

/** A pull that is not full yet. */
interface Hungry {
  readonly order: PullOrder
  readonly portion: Portion<Candidate>
}

interface ClaimedFront {
  readonly candidates: Candidate[]
  /** There is no more at the moment. */
  readonly isEnd: boolean
}

/**
 * Claims from the front what these pulls take, and no more: what is locked until the commit and given to nobody is passed
 * over by all other claims, which then take from higher levels or find nothing.
 */
export async function claimFor(
  tx: Transaction,
  hungry: readonly Hungry[],
  guess: number,
): Promise<ClaimedFront> {
  const appetite = hungry.reduce(
    (sum, { order, portion }) =>
      sum + (order.records === null ? portion.room : Math.min(portion.room, guess)),
    0,
  )
  const wanted = Math.min(appetite, LARGEST_CLAIM)
  if (hungry.some(({ order }) => order.records !== null)) return claimByRecords(tx, hungry, wanted)
  const candidates = await claimCandidates(tx, wanted)
  return { candidates, isEnd: candidates.length < wanted }
}

/** How many it is can be told only from what is there, so that is read before any of it is locked. */
async function claimByRecords(
  tx: Transaction,
  hungry: readonly Hungry[],
  wanted: number,
): Promise<ClaimedFront> {
  const portions = hungry.map(({ portion }) => portion)
  const inFront = await tx.run(recordsInFront, [wanted])
  let count = wouldTake(inFront, portions)
  while (count > 0) {
    const [, candidates] = await Promise.all([tx.run(beforeClaim), claimCandidates(tx, count)])
    const fitting = wouldTake(candidates, portions)
    if (fitting === candidates.length) return { candidates, isEnd: candidates.length < count }
    // Others have taken what was read, and what comes after it is larger: those too many are let go at once.
    await tx.run(unclaim)
    count = fitting
  }
  return { candidates: [], isEnd: true }
}
