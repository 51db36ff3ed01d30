import type { DatabaseSync } from 'node:sqlite'
import { type CallBack, type CalledBackPartition, MAX_LISTED_VIOLATIONS } from '@baton/protocol'
import { isSamePartition, refusalOfNew } from '../../handoff/rules/call-back-rules.ts'
import { rankFresh } from '../../handoff/rules/fair-order.ts'
import type { Policy } from '../../handoff/rules/policy.ts'
import { totalOf } from '../../handoff/rules/tally.ts'
import { beginAnew, isDone } from '../../handoff/rules/task-course.ts'
import type { LaneEntry, TaskEntry } from '../../handoff/rules/task-entry.ts'
import type { CallBackOrder, CallBackResult, KnownConflict } from '../../handoff/store.ts'
import type { Consequences } from './consequences.ts'
import type { Front } from './front.ts'
import { type Lanes, STEP } from './lanes.ts'
import type { Ledger } from './ledger.ts'
import type { Names } from './names.ts'
import { NewPartitions } from './new-partitions.ts'
import { query } from './query.ts'
import { Ranges } from './ranges.ts'
import type { Steps } from './steps.ts'

/** The part of a call-back that falls on one lane, in the order in which it was sent. */
interface LaneArrival {
  readonly level: number
  readonly lane: LaneEntry | undefined
  readonly fresh: CalledBackPartition[]
}

export class CallBacks {
  readonly #ledger: Ledger
  readonly #lanes: Lanes
  readonly #front: Front
  readonly #names: Names
  readonly #new: NewPartitions
  readonly #ranges: Ranges
  readonly #policy: Policy
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync, ledger: Ledger, lanes: Lanes, front: Front, names: Names, policy: Policy) {
    this.#ledger = ledger
    this.#lanes = lanes
    this.#front = front
    this.#names = names
    this.#ranges = new Ranges(db)
    this.#policy = policy
    this.#new = new NewPartitions(db, names)
    this.#sql = prepare(db)
  }

  *run(orders: readonly CallBackOrder[], now: number, consequences: Consequences): Steps<CallBackResult[]> {
    const results: CallBackResult[] = []
    for (const order of orders) results.push(yield* this.#accept(order, now, consequences))
    return results
  }

  /** Reads everything before it writes anything: a refused array leaves no trace. */
  *#accept(
    { callBack, producer }: CallBackOrder,
    now: number,
    consequences: Consequences,
  ): Steps<CallBackResult> {
    const task = this.#ledger.entries.taskNamed(callBack.taskId)
    const { arrivals, duplicates, conflicts, total } = yield* this.#compare(task, callBack)
    if (total > 0) return { kind: 'conflict', conflicts, total }
    const accepted = callBack.partitions.length - duplicates
    if (accepted > 0 && task !== undefined) {
      let records = 0
      for (const { fresh } of arrivals) for (const { recordCount } of fresh) records += recordCount
      const refusal = refusalOfNew(task, records)
      if (refusal !== undefined) return refusal
    }
    const owner = task ?? this.#ledger.entries.createTask(callBack.taskId, this.#policy.levelBarrier, now)
    if (accepted > 0) {
      const readied = yield* this.#store(owner, arrivals, now)
      consequences.readied += readied
    }
    owner.lastCallBackAt = now
    this.#ledger.touch(owner)
    if (producer !== null) {
      this.#sql.produced.run(this.#names.instance(producer, 'producer', now), owner.id, now)
    }
    return { kind: 'stored', accepted, duplicates }
  }

  *#compare(task: TaskEntry | undefined, { partitions }: CallBack) {
    const arrivals: LaneArrival[] = []
    const conflicts: KnownConflict[] = []
    let duplicates = 0
    let total = 0
    let arrival: LaneArrival | undefined
    let known: (index: number) => boolean = () => false
    for (const [position, partition] of partitions.entries()) {
      if (position % STEP === STEP - 1) yield
      if (arrival?.level !== partition.level) {
        const lane = task && this.#ledger.entries.laneOf(task, partition.level)
        arrival = { level: partition.level, lane, fresh: [] }
        known = lane === undefined ? () => false : this.#ranges.contains(lane)
        arrivals.push(arrival)
      }
      if (arrival.lane === undefined || !known(partition.index)) {
        arrival.fresh.push(partition)
        continue
      }
      const stored = this.#stored(arrival.lane, partition.index)
      if (stored === undefined || isSamePartition(stored, partition)) duplicates += 1
      else if (++total <= MAX_LISTED_VIOLATIONS) conflicts.push({ position, known: stored })
    }
    return { arrivals, duplicates, conflicts, total }
  }

  /** Undefined for a partition that was purged: its index is remembered, its content is not. */
  #stored(lane: LaneEntry, index: number): CalledBackPartition | undefined {
    const row = this.#sql.identity.get(lane.id, index)
    return (
      row && {
        level: lane.level,
        index,
        recordCount: row.record_count,
        computeTableName: this.#names.computeTable(row.compute_table),
        spelling: row.spelling,
      }
    )
  }

  /** Returns how many are ready at once. */
  *#store(task: TaskEntry, arrivals: readonly LaneArrival[], now: number): Steps<number> {
    // Also when it was finished by a settle of this very transaction: settles come first.
    if (totalOf(task.partitions) > 0 && isDone(task)) beginAnew(task)
    const tables = new Set<string>()
    let readied = 0
    let sinceYield = 0
    for (const { level, lane, fresh } of arrivals) {
      if (fresh.length === 0) continue
      const owner = lane ?? this.#ledger.entries.createLane(task, level)
      for (let at = 0; at < fresh.length; at += STEP) {
        const next = fresh.slice(at, at + STEP)
        readied += this.#append(owner, next, now)
        sinceYield += next.length
        if (sinceYield >= STEP) {
          sinceYield = 0
          yield
        }
      }
      for (const { computeTableName } of fresh) tables.add(computeTableName)
    }
    for (const table of tables) this.#sql.taskTable.run(task.id, this.#names.computeTableId(table))
    return readied
  }

  /** As many as its window has room for are ready at once, the rest follow them. Returns how many are. */
  #append(lane: LaneEntry, fresh: readonly CalledBackPartition[], now: number): number {
    const level = this.#front.timeToRank(lane.level)
    const room = Math.max(this.#lanes.roomAtTheBack(lane), 0)
    const ready = fresh.slice(0, room)
    for (const partition of ready) {
      const { index, recordCount, computeTableName, spelling } = partition
      const rank = rankFresh(level, lane, recordCount)
      const id = this.#new.insertReady(lane, partition, rank, now)
      const computeTable = this.#names.computeTableId(computeTableName)
      const candidate = { ...neverLeased, id, lane, idx: index, spelling, recordCount, computeTable, rank }
      this.#ledger.move(lane, null, 'ready', recordCount)
      if (this.#front.becomesReady(candidate)) this.#front.join(candidate)
    }
    const held = fresh.slice(room)
    this.#new.insertHeld(lane, held, now)
    for (const { recordCount } of held) this.#ledger.move(lane, null, 'held', recordCount)
    this.#ranges.add(
      lane,
      fresh.map(({ index }) => index),
    )
    return ready.length
  }
}

const neverLeased = { term: 0, attempts: 0, releases: 0, fresh: true }

function prepare(db: DatabaseSync) {
  return {
    identity: query<{ record_count: number; compute_table: number; spelling: string | null }>(
      db,
      'SELECT record_count, compute_table, spelling FROM partition WHERE lane = ? AND idx = ?',
    ),
    taskTable: db.prepare(
      'INSERT INTO task_compute_table (task, compute_table) VALUES (?, ?) ON CONFLICT DO NOTHING',
    ),
    produced: db.prepare(
      `INSERT INTO produced_task (instance, task, last_call_back_at) VALUES (?, ?, ?)
       ON CONFLICT (instance, task) DO UPDATE SET last_call_back_at = excluded.last_call_back_at`,
    ),
  }
}
