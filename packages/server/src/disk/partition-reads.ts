import type { Disk, DueBackoffs, RowsOfLane, WaitingOfLane } from '../handoff/disk.ts'
import { type KnownPartition, newPartition, type StoredPartition } from '../handoff/partition.ts'
import type { DuePosition } from '../handoff/views/queries.ts'
import type { SqlTables } from './sql-tables.ts'
import {
  type Asked,
  each,
  eachOf,
  LIMIT,
  lookUp,
  type Query,
  rowsOf,
  type Session,
  select,
} from './statements.ts'

/** Beyond the tail nothing counts. `+ 0`: the planner of PostgreSQL must not use the index on id. */
export const WITHIN_TAIL = 'id + 0 <= ?'

export function partitionReadsBy(session: Session, tables: SqlTables) {
  const { descriptors, where } = tables
  const partitions = rowsOf(tables.partitions)
  const checkpoint = lookUp(rowsOf(tables.checkpoints), 'partition')
  const partition = lookUp(partitions, 'id')
  const partitionNamed = lookUp(partitions, 'lane', 'idx')
  const delayed = select(partitions, `${where.delayedPartitions} ORDER BY ${where.delayedUntil}, id ${LIMIT}`)
  const leases = ordered(partitions, where.leasesByEnd, where.leaseEndsAt)
  const returned = ordered(partitions, `${where.returnedPartitions} AND lane = ?`, where.returnedAt)
  // Without an index by table: few partitions of a lane have come back.
  const returnedOfTable = ordered(
    partitions,
    `${where.returnedPartitions} AND lane = ? AND compute_table = ?`,
    where.returnedAt,
  )
  /** Untouched, so only the descriptor is read. Skips those that a pull by table took before the others. */
  const fresh = (condition: string): Query<StoredPartition> => ({
    selected: descriptors.selected(),
    from: `${descriptors.path} ${condition} AND id > ? AND id <= ?
      AND state = 'ready' AND due_at IS NULL ORDER BY id ${LIMIT}`,
    read: (values) => newPartition(descriptors.read(values)),
  })
  const arrived = fresh('WHERE lane = ?')
  const arrivedOfTable = fresh(`${where.partitionsInMixedLanes} AND lane = ?`)
  const rows = rowQueries(partitions, tables)

  const waiting = ({ lane, table, returned: cameBack, after, upTo, limit }: WaitingOfLane) => {
    const of = table === undefined ? [lane] : [table, lane]
    if (!cameBack)
      return [
        {
          query: table === undefined ? arrived : arrivedOfTable,
          values: [...of, after.id, upTo, limit],
        },
      ]
    const found = table === undefined ? returned : returnedOfTable
    return found(table === undefined ? [lane] : [lane, table], after, limit)
  }
  return {
    leases: async (after, limit) => (await session.lists(leases([], after, limit))).flat().slice(0, limit),
    partitionsById: (ids) => eachOf(session, partition, ids),
    partitionsNamed: (asked) =>
      each(
        session,
        partitionNamed,
        asked.flatMap(({ lane, indexes }) => indexes.map((index) => [lane, index])),
      ),
    rows: (asked) => session.lists(asked.map(rows)),
    async waiting(asked) {
      const parts = asked.map(waiting)
      const found = await session.lists(parts.flat())
      return parts.map(({ length }, at) => found.splice(0, length).flat().slice(0, asked[at]?.limit))
    },
    checkpoints: (ids) => eachOf(session, checkpoint, ids),
    /** Reads one row more than the limit, to know when the next one ends. */
    async dueBackoffs(now, limit): Promise<DueBackoffs> {
      const first = await session.all(delayed, limit + 1)
      const due = first.slice(0, limit).filter(({ dueAt }) => (dueAt ?? 0) <= now)
      return { due, nextAt: first[due.length]?.dueAt ?? null }
    },
  } satisfies Partial<Disk>
}

/** Which indexes were called back before. Ranges outlive the rows that retention removes. */
export function knownBy(session: Session, { knownPartitions, ranges }: SqlTables) {
  const partition = select(rowsOf(knownPartitions), `WHERE lane = ? AND idx = ? AND ${WITHIN_TAIL}`)
  const lastBelow: Query<number> = {
    selected: 'last',
    from: `${ranges.path} WHERE lane = ? AND first <= ? ORDER BY first DESC LIMIT 1`,
    read: ([last]) => last as number,
  }
  return {
    async known(asked) {
      const named = asked.flatMap(({ lane, tail, indexes }, at) =>
        indexes.map((index) => ({ at, lane, tail, index })),
      )
      const rows = named.map(({ lane, index, tail }) => ({ query: partition, values: [lane, index, tail] }))
      const highest = asked.map(({ lane, indexes }) => ({
        query: lastBelow,
        values: [lane, Math.max(-1, ...indexes)],
      }))
      const found = await session.lists<KnownPartition | number>([...rows, ...highest])
      const ends = found.splice(named.length) as number[][]
      const missing = named.filter(
        ({ at, index }, place) => found[place]?.length === 0 && index <= (ends[at]?.[0] ?? -1),
      )
      const within = await session.lists(
        missing.map(({ lane, index }) => ({ query: lastBelow, values: [lane, index] })),
      )
      const known = asked.map(() => new Map<number, KnownPartition | null>())
      for (const [place, { at, index }] of named.entries()) {
        const [row] = found[place] as KnownPartition[]
        if (row !== undefined) known[at]?.set(index, row)
      }
      for (const [place, { at, index }] of missing.entries())
        if ((within[place]?.[0] ?? -1) >= index) known[at]?.set(index, null)
      return known
    },
  } satisfies Partial<Disk>
}

/**
 * Reads partitions in the order of a time and of their id, after a position. The two are compared one after the
 * other: for a row comparison, SQLite uses only the first column of the index, and reads again all rows with
 * the same time, which may be all rows. So some more rows than the limit may be found.
 */
function ordered(partitions: Query<StoredPartition>, condition: string, time: string) {
  const sameTime = select(partitions, `${condition} AND ${time} = ? AND id > ? ORDER BY id ${LIMIT}`)
  const later = select(partitions, `${condition} AND ${time} > ? ORDER BY ${time}, id ${LIMIT}`)
  return (
    given: readonly (number | string)[],
    after: DuePosition,
    limit: number,
  ): Asked<StoredPartition>[] => {
    // Ids begin at 1.
    if (after.id === 0) return [{ query: later, values: [...given, after.dueAt - 1, limit] }]
    return [
      { query: sameTime, values: [...given, after.dueAt, after.id, limit] },
      { query: later, values: [...given, after.dueAt, limit] },
    ]
  }
}

/** Parked and begun partitions and those that failed are few and have indexes; other states are filtered. */
function rowQueries(partitions: Query<StoredPartition>, { dialect, where }: SqlTables) {
  const any = `${dialect.indexed('partition_identity')} WHERE true`
  const ofFailure = `${dialect.indexed('partition_failed')} WHERE failure = ?`
  const inOrder = (from: string, and = '') =>
    select(
      partitions,
      `${from} AND lane = ? AND idx > ? AND idx <= ? AND ${WITHIN_TAIL} ${and} ORDER BY idx ${LIMIT}`,
    )
  const all = inOrder(any)
  const begun = inOrder(where.begunPartitions)
  const parked = inOrder(where.parkedPartitions)
  const inState = inOrder(any, 'AND state = ?')
  const failed = inOrder(ofFailure)
  const failedInState = inOrder(ofFailure, 'AND state = ?')
  const parkedAs = inOrder(where.partitionsParkedAs)
  return (query: RowsOfLane): Asked<StoredPartition> => {
    const { lane, tail, state, failure, afterIndex, lastIndex = Number.MAX_SAFE_INTEGER, limit } = query
    const within = [lane, afterIndex, lastIndex, tail]
    if (failure !== undefined) {
      if (state === null) return { query: failed, values: [failure, ...within, limit] }
      if (state === 'parked') return { query: parkedAs, values: [failure, ...within, limit] }
      return { query: failedInState, values: [failure, ...within, state, limit] }
    }
    if (state === null) return { query: all, values: [...within, limit] }
    if (state === 'begun') return { query: begun, values: [...within, limit] }
    if (state === 'parked') return { query: parked, values: [...within, limit] }
    return { query: inState, values: [...within, state, limit] }
  }
}
