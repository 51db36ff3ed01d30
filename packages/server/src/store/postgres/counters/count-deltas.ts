import { advance, type LevelTime } from '../../../handoff/rules/fair-order.ts'
import { type PartitionState, partitionStates } from '../../../handoff/rules/life-cycle.ts'
import { noTallies, type Tallies } from '../../../handoff/rules/tally.ts'
import { countReport } from '../../../handoff/rules/task-course.ts'
import type { TaskEntry } from '../../../handoff/rules/task-entry.ts'
import { addTallies, counterColumns, type LaneKey, moveTallies, taskCounterColumns } from '../rows/entries.ts'
import { NOW, statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'

interface LaneDelta extends LaneKey, Tallies {
  time: LevelTime
  finishedPartitions: number
  finishedRecords: number
  delivered: number
  attemptsWasted: number
  reportedDeclared: number
  reportedRecords: number
  mismatched: number
  readonly parked: number[]
}

const insert = statement(
  'insert-deltas',
  `WITH marked AS (UPDATE baton.commit_mark SET number = $3, marked_at = ${NOW} WHERE session = $2)
   INSERT INTO baton.count_delta SELECT * FROM json_populate_recordset(NULL::baton.count_delta, $1)`,
)

/**
 * What a transaction does to the counters. Written as rows of its own, one per lane it touched, in
 * the same transaction: nodes that finish partitions of one lane do not wait for each other.
 */
export class CountDeltas {
  readonly #lanes = new Map<number, LaneDelta>()
  readonly #drained = new Map<number, LevelTime>()
  readonly #tasks = new Set<number>()

  move(lane: LaneKey, from: PartitionState | null, to: PartitionState | null, recordCount: number): void {
    moveTallies(this.#of(lane), from, to, recordCount)
  }

  /** Something about the task changed that no counter shows. */
  touch(task: number): void {
    this.#tasks.add(task)
  }

  /** A first hand-out moves the level's time. */
  advance(lane: LaneKey, rank: bigint, recordCount: number): void {
    advance(this.#of(lane).time, rank, recordCount)
  }

  /** What is ranked on a drained level from now on starts here, also by those who find it no longer drained. */
  drained(level: number, time: LevelTime): void {
    this.#drained.set(level, { ...time })
  }

  finished(lane: LaneKey, recordCount: number): void {
    const delta = this.#of(lane)
    delta.finishedPartitions += 1
    delta.finishedRecords += recordCount
  }

  delivered(lane: LaneKey): void {
    this.#of(lane).delivered += 1
  }

  wasted(lane: LaneKey, attempts: number): void {
    this.#of(lane).attemptsWasted += attempts
  }

  reported(lane: LaneKey, declared: number, reported: number): void {
    countReport(this.#of(lane), declared, reported)
  }

  parked(lane: LaneKey, partition: number): void {
    this.#of(lane).parked.push(partition)
  }

  get isEmpty(): boolean {
    return this.#lanes.size === 0 && this.#tasks.size === 0
  }

  /** How far this transaction itself moved the time of a level. */
  timeOf(level: number): LevelTime {
    const time = { ...(this.#drained.get(level) ?? { virtual: 0n, served: 0n }) }
    for (const delta of this.#lanes.values()) {
      if (delta.level !== level) continue
      if (delta.time.virtual > time.virtual) time.virtual = delta.time.virtual
      if (delta.time.served > time.served) time.served = delta.time.served
    }
    return time
  }

  /** Brings a task that was read from the database up to date with this transaction. */
  addTo(task: TaskEntry): void {
    for (const delta of this.#lanes.values()) {
      if (delta.task === task.id) addTallies(task, columnsOf(delta))
    }
  }

  /** `at` is when it was counted, for what is written down later. */
  async flush(tx: Transaction, countedAt?: number): Promise<void> {
    if (this.isEmpty) return
    const at = countedAt ?? (await tx.now())
    for (const delta of this.#lanes.values())
      if (this.#drained.has(delta.level)) delta.time = this.timeOf(delta.level)
    const rows: object[] = [...this.#lanes.values()].map((delta) => rowOf(delta, at))
    const counted = new Set([...this.#lanes.values()].map(({ task }) => task))
    for (const task of this.#tasks) if (!counted.has(task)) rows.push({ task, at })
    tx.postMarked(insert, [JSON.stringify(rows)])
  }

  #of(lane: LaneKey): LaneDelta {
    let delta = this.#lanes.get(lane.id)
    if (delta === undefined) {
      delta = {
        id: lane.id,
        task: lane.task,
        level: lane.level,
        ...noTallies(),
        time: { virtual: 0n, served: 0n },
        finishedPartitions: 0,
        finishedRecords: 0,
        delivered: 0,
        attemptsWasted: 0,
        reportedDeclared: 0,
        reportedRecords: 0,
        mismatched: 0,
        parked: [],
      }
      this.#lanes.set(lane.id, delta)
    }
    return delta
  }
}

function columnsOf(delta: LaneDelta): Record<string, number> {
  const columns: Record<string, number> = {}
  for (const state of partitionStates) {
    if (delta.partitions[state] !== 0) columns[`${state}_partitions`] = delta.partitions[state]
    if (delta.records[state] !== 0) columns[`${state}_records`] = delta.records[state]
  }
  return columns
}

/** Only what is not nothing: null columns take no room in a row. */
function rowOf(delta: LaneDelta, at: number): object {
  const { time, parked } = delta
  return {
    task: delta.task,
    lane: delta.id,
    level: delta.level,
    at,
    ...columnsOf(delta),
    ...(delta.finishedPartitions === 0
      ? {}
      : {
          second: Math.floor(at / 1000),
          finished_partitions: delta.finishedPartitions,
          finished_records: delta.finishedRecords,
        }),
    ...(delta.delivered === 0 ? {} : { delivered: delta.delivered }),
    ...(delta.attemptsWasted === 0 ? {} : { attempts_wasted: delta.attemptsWasted }),
    ...(delta.reportedDeclared === 0 && delta.reportedRecords === 0
      ? {}
      : {
          reported_declared: delta.reportedDeclared,
          reported_records: delta.reportedRecords,
          mismatched: delta.mismatched,
        }),
    ...(time.served === 0n ? {} : { virtual: String(time.virtual), served: String(time.served) }),
    ...(parked.length === 0 ? {} : { parked }),
  }
}

/** The sums of what is not folded in yet, by the given columns. */
export const unfoldedSums = [...counterColumns, ...taskCounterColumns]
  .map((column) => `least(coalesce(sum(${column}), 0), ${Number.MAX_SAFE_INTEGER})::bigint AS ${column}`)
  .join(', ')
