import { isLaneOpen } from '../rules/lane-rules.ts'
import { parseLeaseId } from '../rules/lease-id.ts'
import { next } from '../rules/life-cycle.ts'
import { KEY_GRACE_MILLIS, leaseMillis } from '../rules/policy.ts'
import { addCapped } from '../rules/tally.ts'
import { type HandedOut, type PullOrder, type PullResult, StoreUnavailable } from '../store.ts'
import { type Line, untouched } from '../stored.ts'
import type { Lane, Partition } from './memory.ts'
import { loadLeases } from './settle.ts'
import {
  breathe,
  firstWaiting,
  handedOut,
  leaseOf,
  load,
  type Steps,
  type Transaction,
} from './transaction.ts'

/** Lanes that a load brings at a time, and partitions of a line at least. */
const LANES_AT_A_TIME = 256
const LANES_AT_MOST = 4096
const ROWS_AT_A_TIME = 32
const ROWS_AT_MOST = 1000
/** Lines that are filled with one load. */
const LINES_AT_A_TIME = 64

/** Serves pulls in the order of their arrival, each from the front of the order until it has enough. */
export function* pull(tx: Transaction, orders: readonly PullOrder[]): Steps<PullResult[]> {
  const results: PullResult[] = []
  let demand = 0
  for (const { batch } of orders) demand += batch
  for (const order of orders) {
    results.push(yield* pullOne(tx, order, demand))
    demand -= order.batch
  }
  return results
}

function* pullOne(tx: Transaction, order: PullOrder, demand: number): Steps<PullResult> {
  const { key } = order
  const repeated = key === null ? undefined : yield* repeat(tx, key)
  if (repeated !== undefined) return repeated
  const partitions = yield* take(tx, order, demand)
  if (key === null) return { partitions, repeated: false }
  if (partitions.length > 0) {
    remember(tx, key, partitions)
    return { partitions, repeated: false }
  }
  // Nothing is recorded for an empty answer, so nothing would find out that the key is known.
  if (!tx.memory.keys.has(key)) yield* loadKeys(tx, [key])
  return (yield* repeat(tx, key)) ?? { partitions, repeated: false }
}

function* take(tx: Transaction, { instance, batch, records }: PullOrder, demand: number): Steps<HandedOut[]> {
  const taken: HandedOut[] = []
  let met = 0
  while (taken.length < batch && (records === null || taken.length === 0 || met < records)) {
    yield* breathe(taken.length)
    const partition = first(tx) ?? (yield* findFirst(tx, Math.max(batch, demand) - taken.length))
    if (partition === undefined) break
    taken.push(handOut(tx, partition, instance))
    met += partition.recordCount
  }
  if (taken.length > 0 && instance !== null) {
    tx.sawInstance(instance, 'worker')
    const totals = tx.totalsOf(instance, 'worker')
    totals.partitions += taken.length
    totals.records = addCapped(totals.records, met)
  }
  return taken
}

function handOut(tx: Transaction, partition: Partition, instance: string | null): HandedOut {
  const { home, recordCount } = partition
  const { delivery } = tx.policy
  tx.serve(partition)
  const to = next('ready', delivery === 'at-most-once' ? 'deliver' : 'lease')
  tx.count(home, 'ready', to, recordCount)
  tx.requeue(home)
  tx.touchPartition(partition)
  partition.state = to
  partition.term += 1
  // Where it goes if it is given back.
  partition.line = 'released'
  partition.holder = instance
  partition.leasedAt = tx.now
  if (to === 'done') {
    partition.outcome = 'delivered'
    partition.attempts += 1
    partition.settledAt = tx.now
    partition.dueAt = null
    home.owner.delivered += 1
    tx.countFinished(home.owner, recordCount)
    return handedOut(partition, null)
  }
  partition.outcome = null
  partition.secret = tx.secret()
  partition.dueAt = tx.now + leaseMillis(tx.policy, recordCount)
  tx.due(partition.dueAt)
  return handedOut(partition, leaseOf(partition, tx.now))
}

/** The partition whose turn it is, where memory knows; undefined where a load has to tell or there is none. */
function first(tx: Transaction): Partition | undefined {
  const lane = tx.memory.order.front()
  if (lane === null || lane === undefined) return undefined
  return lane.lines[lineToServe(lane)].first
}

/** Loads until the first is known, or it is known that there is none. */
function* findFirst(tx: Transaction, demand: number): Steps<Partition | undefined> {
  const { order } = tx.memory
  let lanesAtATime = LANES_AT_A_TIME
  while (true) {
    const lane = order.front()
    if (lane === undefined) return undefined
    if (lane === null) {
      yield* loadOrder(tx, lanesAtATime)
      // What is passed over because it may not serve is read in ever larger pieces.
      lanesAtATime = Math.min(lanesAtATime * 2, LANES_AT_MOST)
      continue
    }
    const line = lane.lines[lineToServe(lane)]
    if (line.first !== undefined) return line.first
    // Memory and rows disagree: another node leads and has written. Asking the disk again tells.
    if (line.isComplete)
      throw new StoreUnavailable(
        'store_unavailable',
        `lane ${lane.id} counts partitions that it has no rows of; another node may lead by now`,
      )
    yield* loadLines(tx, lane, demand)
  }
}

/** Within a lane what was given back goes first; between its first line and its retries the smaller tag does. */
function lineToServe(lane: Lane): Line {
  if (firstWaiting(lane) === 0 || (lane.retries > 0 && lane.retryTag < lane.tag)) return 'retry'
  return lane.released > 0 ? 'released' : 'fresh'
}

export function* loadOrder(tx: Transaction, limit: number): Steps<void> {
  const { memory } = tx
  const { order: found, lanes: rows } = yield* load(tx, { order: { after: memory.order.loadedTo, limit } })
  const position = new Map(rows.map((row) => [row.id, row]))
  for (const id of found) {
    const lane = memory.lanes.get(id)
    if (lane === undefined || lane.turn === null || lane.heapIndex >= 0) continue
    memory.order.put(lane)
    if (isLaneOpen(lane.owner, lane.level)) tx.catchUp(lane)
  }
  const last = found.at(-1)
  const row = last === undefined ? undefined : position.get(last)
  if (row !== undefined && row.turn !== null)
    memory.order.loadedTo = { level: row.level, turn: row.turn, lane: row.id }
  memory.order.isComplete = found.length < limit
}

/** Fills the line to serve, and those of other lanes that are about to have their turn. */
function* loadLines(tx: Transaction, front: Lane, demand: number): Steps<void> {
  const others = tx.memory.order.ahead(LINES_AT_A_TIME).filter((lane) => {
    return lane !== front && lane.lines[lineToServe(lane)].first === undefined
  })
  const lanes = [front, ...others.slice(0, Math.max(0, demand - 1))]
  const limit = Math.min(Math.max(ROWS_AT_A_TIME, demand), ROWS_AT_MOST)
  const wanted = lanes.map((lane) => ({
    lane,
    line: lineToServe(lane),
    limit: lane === front ? limit : ROWS_AT_A_TIME,
  }))
  const fresh = wanted.filter(({ line }) => line === 'fresh')
  const returned = wanted.filter(({ line }) => line !== 'fresh')
  const loaded = yield* load(tx, {
    ...(fresh.length === 0
      ? {}
      : {
          fresh: fresh.map(({ lane, limit }) => ({
            lane: lane.id,
            after: Math.max(lane.lines.fresh.loadedTo?.id ?? 0, lane.cursor),
            tail: lane.tail,
            limit,
          })),
        }),
    ...(returned.length === 0
      ? {}
      : {
          returned: returned.map(({ lane, line, limit }) => ({
            lane: lane.id,
            line: line as Exclude<Line, 'fresh'>,
            after: lane.lines[line].loadedTo,
            limit,
          })),
        }),
  })
  const parts = [
    ...fresh.map((one, at) => ({ ...one, ids: loaded.fresh[at] ?? [] })),
    ...returned.map((one, at) => ({ ...one, ids: loaded.returned[at] ?? [] })),
  ]
  const rows = new Map(loaded.partitions.map((row) => [row.id, row]))
  for (const { lane, line, limit: most, ids } of parts) {
    const buffer = lane.lines[line]
    const there = new Set(buffer.items)
    const found: Partition[] = []
    for (const id of ids) {
      const partition = tx.memory.partitions.get(id)
      // Memory may know better than the row: that it left the line, or is in it already.
      if (partition?.state === 'ready' && partition.line === line && !there.has(partition))
        found.push(partition)
    }
    if (line === 'fresh' && ids.length < most)
      for (const partition of unwritten(tx, lane)) if (!there.has(partition)) found.push(partition)
    const lastRow = rows.get(ids.at(-1) ?? -1)
    const last =
      lastRow === undefined ? null : { dueAt: line === 'retry' ? (lastRow.dueAt ?? 0) : 0, id: lastRow.id }
    buffer.fill(found, last, ids.length < most)
  }
}

/** Partitions that this very batch brought: their rows are not on the disk yet, and nothing loads them later. */
function unwritten(tx: Transaction, lane: Lane): Partition[] {
  if (!tx.calledBack.has(lane.id)) return []
  const { partitions } = tx.memory
  return tx.newRows
    .filter((row) => row.lane === lane.id)
    .map((row) => partitions.get(row.id) ?? tx.memory.addPartition({ ...row, ...untouched() }))
    .filter(({ state, line }) => state === 'ready' && line === 'fresh')
}

/** The leases that a key was given and that still live; undefined for a key that memory does not know. */
function* repeat(tx: Transaction, key: string): Steps<PullResult | undefined> {
  const row = tx.memory.keys.get(key)?.row
  if (row === null || row === undefined) return undefined
  const leases = row.leases.map(parseLeaseId).filter((lease) => lease !== undefined)
  yield* loadLeases(tx, leases)
  const partitions: HandedOut[] = []
  for (const { partition: id, term, secret } of leases) {
    const partition = tx.memory.partitions.get(id)
    if (partition?.state !== 'leased' || partition.term !== term || partition.secret !== secret) continue
    if ((partition.dueAt ?? 0) <= tx.now || partition.home.owner.cancelled) continue
    partitions.push(handedOut(partition, leaseOf(partition, tx.now)))
  }
  return { partitions, repeated: true }
}

function remember(tx: Transaction, key: string, partitions: readonly HandedOut[]): void {
  const leases = partitions.map(({ lease }) => lease).filter((lease) => lease !== null)
  const lastExpiry = Math.max(tx.now, ...leases.map(({ expiresAt }) => expiresAt))
  if (!tx.memory.keys.has(key)) tx.newKeys.push(key)
  tx.remember(key, { key, leases: leases.map(({ id }) => id), forgetAt: lastExpiry + KEY_GRACE_MILLIS })
}

export function* loadKeys(tx: Transaction, names: readonly string[]): Steps<void> {
  const { keys } = yield* load(tx, { keys: names })
  for (const name of names) {
    if (tx.memory.keys.has(name)) continue
    const row = keys.find(({ key }) => key === name) ?? null
    tx.memory.keys.set(name, { row, changedIn: 0 })
  }
}
