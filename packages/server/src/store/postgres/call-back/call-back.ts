import { type CallBack, type CalledBackPartition, MAX_LISTED_VIOLATIONS } from '@baton/protocol'
import { isSamePartition, refusalOfNew } from '../../../handoff/rules/call-back-rules.ts'
import { rankFresh } from '../../../handoff/rules/fair-order.ts'
import { isLaneOpen } from '../../../handoff/rules/lane-rules.ts'
import type { Policy } from '../../../handoff/rules/policy.ts'
import { beginAnew, isDone } from '../../../handoff/rules/task-course.ts'
import type { TaskEntry } from '../../../handoff/rules/task-entry.ts'
import type { CallBackOrder, CallBackResult, KnownConflict } from '../../../handoff/store.ts'
import type { CountDeltas } from '../counters/count-deltas.ts'
import { levelsToRank } from '../counters/level-times.ts'
import { moveTallies } from '../rows/entries.ts'
import type { Names } from '../rows/names.ts'
import type { Transaction } from '../session/transaction.ts'
import { holdLane, LOW_WATER, saveLaneTags, tripwireAt, WINDOW } from '../windows/lanes.ts'
import { placeTripwire } from '../windows/tripwire.ts'
import {
  type CalledBackLane,
  createLanes,
  lockLanesOfTask,
  roomAtTheBack,
  storedPartitions,
} from './called-back-lanes.ts'
import { type CalledBackTask, lockCalledBackTasks, saveCalledBackTask } from './called-back-tasks.ts'
import { insertPartitions, type NewPartition, noteProducer, noteTables } from './new-partitions.ts'
import { KnownRanges } from './ranges.ts'

export interface CalledBack {
  readonly results: readonly CallBackResult[]
  /** Partitions that this transaction made ready. */
  readonly readied: number
  /** A task with a level barrier is concerned. */
  readonly mayOpenLevels: boolean
}

interface Comparison {
  readonly lanes: Map<number, CalledBackLane>
  readonly fresh: CalledBackPartition[]
  readonly duplicates: number
  readonly conflicts: KnownConflict[]
  readonly total: number
  readonly ranges: KnownRanges
}

export class CallBacks {
  readonly #policy: Policy
  readonly #names: Names

  constructor(policy: Policy, names: Names) {
    this.#policy = policy
    this.#names = names
  }

  async run(tx: Transaction, orders: readonly CallBackOrder[], deltas: CountDeltas): Promise<CalledBack> {
    if (orders.length === 0) return { results: [], readied: 0, mayOpenLevels: false }
    const taskIds = orders.map(({ callBack }) => callBack.taskId)
    const tasks = await lockCalledBackTasks(tx, taskIds, this.#policy.levelBarrier, deltas)
    const results: CallBackResult[] = []
    let readied = 0
    for (const { callBack, producer } of orders) {
      const task = tasks.get(callBack.taskId)
      if (task === undefined)
        throw new Error(`task ${callBack.taskId} is missing right after it was inserted`)
      const { result, madeReady } = await this.#accept(tx, task, callBack, producer, deltas)
      results.push(result)
      readied += madeReady
    }
    return { results, readied, mayOpenLevels: [...tasks.values()].some(({ entry }) => entry.levelBarrier) }
  }

  /** Reads everything before it writes anything: a refused array leaves no trace. */
  async #accept(
    tx: Transaction,
    task: CalledBackTask,
    callBack: CallBack,
    producer: string | null,
    deltas: CountDeltas,
  ): Promise<{ result: CallBackResult; madeReady: number }> {
    const { entry } = task
    const compared = await compare(tx, task, callBack)
    const { fresh, duplicates, conflicts, total } = compared
    if (total > 0) return refused({ kind: 'conflict', conflicts, total })
    if (fresh.length > 0 && !task.isNew) {
      const records = fresh.reduce((sum, { recordCount }) => sum + recordCount, 0)
      const refusal = refusalOfNew(entry, records)
      if (refusal !== undefined) return refused(refusal)
    }
    const now = await tx.now()
    const madeReady = fresh.length === 0 ? 0 : await this.#store(tx, task, compared, deltas)
    entry.lastCallBackAt = now
    deltas.touch(entry.id)
    saveCalledBackTask(tx, entry)
    if (producer !== null) noteProducer(tx, this.#names.knownInstance(producer), entry.id, now)
    task.isNew = false
    return { result: { kind: 'stored', accepted: fresh.length, duplicates }, madeReady }
  }

  async #store(
    tx: Transaction,
    { entry, isNew }: CalledBackTask,
    { lanes, fresh, ranges }: Comparison,
    deltas: CountDeltas,
  ): Promise<number> {
    if (!isNew && isDone(entry)) beginAnew(entry)
    const byLevel = Map.groupBy(fresh, ({ level }) => level)
    const levels = [...byLevel.keys()]
    await closeBarrier(tx, entry, Math.min(...levels), deltas)
    const missing = levels.filter((level) => !lanes.has(level))
    const known = levels.flatMap((level) => lanes.get(level)?.id ?? [])
    const [created, room, times] = await Promise.all([
      createLanes(tx, entry.id, missing),
      roomAtTheBack(tx, known),
      levelsToRank(tx, levels, deltas),
    ])
    for (const lane of created) lanes.set(lane.level, lane)
    const rows: NewPartition[] = []
    const indexes = new Map<number, number[]>()
    let readied = 0
    const ranked: CalledBackLane[] = []
    const nearlyFull: number[] = []
    for (const [level, arriving] of byLevel) {
      const lane = lanes.get(level)
      const time = times.get(level)
      if (lane === undefined || time === undefined) throw new Error(`level ${level} was not prepared`)
      const space = isLaneOpen(entry, level) ? Math.min(room.get(lane.id) ?? WINDOW, arriving.length) : 0
      const tripwire = space < arriving.length && space > 0 ? tripwireAt(space) : -1
      for (const [position, partition] of arriving.entries()) {
        const state = position < space ? 'ready' : 'held'
        const rank = state === 'ready' ? rankFresh(time, lane, partition.recordCount) : null
        const table = this.#names.computeTableId(partition.computeTableName)
        rows.push({ ...partition, lane: lane.id, rank, refill: position === tripwire, table })
        deltas.move(lane, null, state, partition.recordCount)
        moveTallies(entry, null, state, partition.recordCount)
      }
      indexes.set(
        lane.id,
        arriving.map(({ index }) => index),
      )
      readied += space
      if (tripwire !== -1 && space < LOW_WATER) nearlyFull.push(lane.id)
      if (space > 0) ranked.push(lane)
      else if (isLaneOpen(entry, level)) placeTripwire(tx, lane.id)
    }
    saveLaneTags(tx, ranked)
    const tables = new Set(rows.map(({ table }) => table))
    insertPartitions(tx, entry.id, rows, await tx.now())
    // Too few stand behind a tripwire among those that still fitted: one among those before them is better.
    for (const lane of nearlyFull) placeTripwire(tx, lane)
    ranges.add(tx, indexes)
    noteTables(tx, entry.id, [...tables])
    return readied
  }
}

function refused(result: CallBackResult): { result: CallBackResult; madeReady: number } {
  return { result, madeReady: 0 }
}

async function compare(tx: Transaction, task: CalledBackTask, { partitions }: CallBack): Promise<Comparison> {
  const levels = [...new Set(partitions.map(({ level }) => level))]
  const lanes = task.isNew
    ? new Map<number, CalledBackLane>()
    : await lockLanesOfTask(tx, task.entry.id, levels)
  const indexes = new Map<number, number[]>()
  for (const { level, index } of partitions) {
    const lane = lanes.get(level)
    if (lane === undefined) continue
    const of = indexes.get(lane.id)
    if (of === undefined) indexes.set(lane.id, [index])
    else of.push(index)
  }
  const ranges = await KnownRanges.read(tx, indexes)
  const repeated = partitions.flatMap((partition, position) => {
    const lane = lanes.get(partition.level)
    return lane !== undefined && ranges.contains(lane.id, partition.index)
      ? [{ lane, index: partition.index, position, partition }]
      : []
  })
  const stored = await storedPartitions(tx, repeated)
  const conflicts: KnownConflict[] = []
  let total = 0
  for (const { lane, index, position, partition } of repeated) {
    const known = stored.get(`${lane.id}-${index}`)
    if (known === undefined || isSamePartition(known, partition)) continue
    total += 1
    if (total <= MAX_LISTED_VIOLATIONS) conflicts.push({ position, known })
  }
  const known = new Set(repeated.map(({ position }) => position))
  return {
    lanes,
    fresh: repeated.length === 0 ? partitions : partitions.filter((_, position) => !known.has(position)),
    duplicates: repeated.length - total,
    conflicts,
    total,
    ranges,
  }
}

/**
 * New work below the open level closes what is above it, for every later pull. Closing cannot be
 * wrong, so it is done here; opening needs the counters and is left to the roller.
 */
async function closeBarrier(
  tx: Transaction,
  task: TaskEntry,
  lowest: number,
  deltas: CountDeltas,
): Promise<void> {
  const before = task.openLevel
  if (!task.levelBarrier || (before !== null && before <= lowest)) return
  task.openLevel = lowest
  if (before === null) return
  const closing = (await lockLanesOfTask(tx, task.id, [before])).get(before)
  if (closing === undefined) return
  // The whole window: a lane that opens again before the rest is held would go on from the middle of it.
  const held = await holdLane(tx, closing, WINDOW, (from, to, records) => {
    deltas.move(closing, from, to, records)
    moveTallies(task, from, to, records)
  })
  if (held > 0) saveLaneTags(tx, [closing])
}
