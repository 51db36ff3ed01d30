import { isLaneOpen } from '../../../handoff/rules/lane-rules.ts'
import { next, type PartitionState } from '../../../handoff/rules/life-cycle.ts'
import { leaseMillis, type Policy } from '../../../handoff/rules/policy.ts'
import type { Change, LeaseOutcome, Standing } from '../../../handoff/rules/settlement.ts'
import type { CountDeltas } from '../counters/count-deltas.ts'
import { NEXT_SET } from '../queues/due-sets.ts'
import { changeQueued } from '../queues/queues.ts'
import { besideId } from '../rows/beside-ids.ts'
import type { LaneKey } from '../rows/entries.ts'
import { type Row, statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'

/** A partition as it is judged: changed in memory, possibly more than once, and written at the end. */
export interface PartitionEntry extends Standing {
  readonly id: number
  readonly lane: LaneKey
  readonly laneIsOpen: boolean
  readonly hasBarrier: boolean
  readonly recordCount: number
  readonly stay: number
  state: PartitionState
  outcome: LeaseOutcome | null
  attempts: number
  releasesInARow: number
  dueAt: number | null
  keptRank: bigint | null
  write: Write | null
}

/** What else is to be written of a partition that changed. */
interface Write {
  moved: boolean
  losesRank: boolean
  settledAt: number | null
  reported: number | null
  reason: string | null | undefined
  /** The place that a partition gets which had lost its own. */
  rank: bigint | null
}

/** For statements that lock partitions and read all that a verdict needs. */
export const standingColumns = `p.id, p.lane, l.task, p.level, p.state, p.due_at, p.term, p.secret, p.outcome,
  p.stay, p.attempts, p.releases, p.record_count, p.rank::text AS rank_text, t.paused, t.cancelled, t.level_barrier, t.open_level`
export const standingJoins = `
  CROSS JOIN LATERAL (SELECT task FROM baton.lane WHERE id = p.lane OFFSET 0) l
  CROSS JOIN LATERAL (
    SELECT paused, cancelled, level_barrier, open_level FROM baton.task WHERE id = l.task OFFSET 0
  ) t`

/** In the order of the array, which is that of the ids: who locks several locks them in one order. */
const byIds = statement(
  'lock-partitions',
  `SELECT ${standingColumns} FROM unnest($1::bigint[]) AS a (id)
   CROSS JOIN LATERAL (SELECT * FROM baton.partition WHERE id = a.id FOR UPDATE) p ${standingJoins}`,
)
const change = statement(
  'change-partitions',
  `UPDATE baton.partition p SET state = ${besideId('$2::text[]')}, parked = ${besideId('$2::text[]')} = 'parked',
     outcome = ${besideId('$3::text[]')}, attempts = ${besideId('$4::int[]')}, releases = ${besideId('$5::int[]')},
     due_at = ${besideId('$6::bigint[]')}, due_with = CASE WHEN ${besideId('$7::int[]')} = 0 THEN p.due_with WHEN ${besideId('$6::bigint[]')} IS NOT NULL THEN ${NEXT_SET} END,
     stay = p.stay + ${besideId('$7::int[]')}, rank = ${besideId('$8::bigint[]')},
     settled_at = coalesce(${besideId('$9::bigint[]')}, p.settled_at),
     reported_records = coalesce(${besideId('$10::bigint[]')}, p.reported_records),
     reason = CASE WHEN ${besideId('$11::boolean[]')} THEN ${besideId('$12::text[]')} ELSE p.reason END
   WHERE p.id = ANY ($1::bigint[])`,
)

export function readStanding(row: Row): PartitionEntry {
  const level = row['level'] as number
  const rank = row['rank_text'] as string | null
  return {
    id: row['id'] as number,
    lane: { id: row['lane'] as number, task: row['task'] as number, level },
    laneIsOpen: isLaneOpen(
      {
        paused: row['paused'] as boolean,
        cancelled: row['cancelled'] as boolean,
        levelBarrier: row['level_barrier'] as boolean,
        openLevel: row['open_level'] as number | null,
      },
      level,
    ),
    hasBarrier: row['level_barrier'] as boolean,
    recordCount: row['record_count'] as number,
    stay: row['stay'] as number,
    state: row['state'] as PartitionState,
    term: row['term'] as number,
    secret: row['secret'] as string,
    outcome: row['outcome'] as LeaseOutcome | null,
    attempts: row['attempts'] as number,
    releasesInARow: row['releases'] as number,
    taskCancelled: row['cancelled'] as boolean,
    dueAt: row['due_at'] as number | null,
    keptRank: rank === null ? null : BigInt(rank),
    write: null,
  }
}

/** Locked in the order of their ids, in one statement: so two nodes never wait for each other in a circle. */
export async function lockPartitions(
  tx: Transaction,
  ids: Iterable<number>,
): Promise<Map<number, PartitionEntry>> {
  const wanted = [...new Set(ids)].sort((a, b) => a - b)
  if (wanted.length === 0) return new Map()
  const rows = await tx.run(byIds, [wanted])
  return new Map(rows.map((row) => [row['id'] as number, readStanding(row)]))
}

/** Carries a verdict out in memory. Returns when the partition is due next, if it is. */
export function applyChange(
  partition: PartitionEntry,
  change: Change,
  deltas: CountDeltas,
  policy: Policy,
  now: number,
): number | null {
  const { lane, recordCount } = partition
  partition.write ??= {
    moved: false,
    losesRank: false,
    settledAt: null,
    reported: null,
    reason: undefined,
    rank: null,
  }
  const { write } = partition
  if (change.wasted !== 0) deltas.wasted(lane, change.wasted)
  if (change.reason !== undefined) write.reason = change.reason
  partition.outcome = change.outcome
  deltas.touch(lane.task)
  if (change.event === null) return null
  deltas.move(lane, partition.state, change.to, recordCount)
  write.moved = true
  partition.state = change.to
  partition.attempts = change.attempts
  partition.releasesInARow = change.releasesInARow
  partition.dueAt = null
  switch (change.to) {
    case 'done':
      write.settledAt = now
      deltas.finished(lane, recordCount)
      write.reported = change.records ?? null
      if (write.reported !== null) deltas.reported(lane, recordCount, write.reported)
      return null
    case 'leased':
      partition.dueAt = now + leaseMillis(policy, recordCount)
      return partition.dueAt
    case 'delayed':
      partition.dueAt = now + change.delayMillis
      write.losesRank = !change.keepsRank
      return partition.dueAt
    case 'ready':
      if (!partition.laneIsOpen) holdReturned(partition, deltas)
      return null
    case 'parked':
      deltas.parked(lane, partition.id)
      write.losesRank = true
      return null
    case 'cancelled':
    case 'held':
      write.losesRank = true
      return null
  }
}

/** Given back while its lane is closed: it waits behind the window like the others. */
function holdReturned(partition: PartitionEntry, deltas: CountDeltas): void {
  const to = next(partition.state, 'hold')
  deltas.move(partition.lane, partition.state, to, partition.recordCount)
  partition.state = to
  if (partition.write !== null) partition.write.losesRank = true
}

/** The one that it is given, or the one that it keeps. */
function rankAfter({ losesRank, rank, keptRank }: Pick<PartitionEntry, 'keptRank'> & Write): string | null {
  const after = losesRank ? null : (rank ?? keptRank)
  return after === null ? null : String(after)
}

export function writeChanges(tx: Transaction, partitions: Iterable<PartitionEntry>): void {
  const changed = [...partitions]
    .flatMap((partition) => (partition.write === null ? [] : [{ ...partition, ...partition.write }]))
    .sort((a, b) => a.id - b.id)
  if (changed.length === 0) return
  const ids = changed.map(({ id }) => id)
  const moved = changed.flatMap(({ id, moved: hasMoved }) => (hasMoved ? id : []))
  changeQueued(tx, moved, () =>
    tx.post(change, [
      ids,
      changed.map(({ state }) => (state === 'ready' ? 'held' : state)),
      changed.map(({ outcome }) => outcome),
      changed.map(({ attempts }) => attempts),
      changed.map(({ releasesInARow }) => releasesInARow),
      changed.map(({ dueAt }) => dueAt),
      changed.map((of) => (of.moved ? 1 : 0)),
      changed.map(rankAfter),
      changed.map(({ settledAt }) => settledAt),
      changed.map(({ reported }) => reported),
      changed.map(({ reason }) => reason !== undefined),
      changed.map(({ reason }) => reason ?? null),
    ]),
  )
}
