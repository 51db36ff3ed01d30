import type { DatabaseSync } from 'node:sqlite'
import { drain, type LevelTime } from '../../handoff/fair-order.ts'
import type { PartitionState } from '../../handoff/life-cycle.ts'
import { isLaneOpen, taskState } from '../../handoff/task-record.ts'
import {
  assignCounters,
  counters,
  type LaneEntry,
  PACE_SECONDS_KEPT,
  readLane,
  readTask,
  type TaskEntry,
  taggedLaneColumns,
} from './entries.ts'

/** More entries than this are dropped after a commit: memory must not follow the number of tasks. */
const CACHED_LANES = 20_000

/**
 * Tasks, lanes and levels as the running transaction sees them.
 *
 * Hundreds of partitions of a batch share a handful of these rows: they are read once, changed in
 * memory, and written once before the commit. This process is the only writer of the file, so what
 * was committed stays valid for the next transaction; after a rollback everything is forgotten.
 */
export class Ledger {
  readonly #tasks = new Map<number, TaskEntry>()
  readonly #taskIds = new Map<string, TaskEntry>()
  readonly #lanes = new Map<number, LaneEntry>()
  readonly #lanesOfTask = new Map<TaskEntry, Map<number, LaneEntry>>()
  readonly #levels = new Map<number, LevelTime>()
  readonly #touchedTasks = new Set<TaskEntry>()
  readonly #touchedLanes = new Set<LaneEntry>()
  readonly #touchedLevels = new Set<number>()
  readonly #pace = new Map<TaskEntry, { partitions: number; records: number }>()
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  taskNamed(taskId: string): TaskEntry | undefined {
    return this.#taskIds.get(taskId) ?? this.#keepTask(this.#sql.taskByName.get(taskId))
  }

  task(id: number): TaskEntry {
    const task = this.#tasks.get(id) ?? this.#keepTask(this.#sql.taskById.get(id))
    if (task === undefined) throw new Error(`a lane belongs to task row ${id}, which is missing`)
    return task
  }

  createTask(taskId: string, levelBarrier: boolean, now: number): TaskEntry {
    this.#sql.insertTask.run(taskId, levelBarrier ? 1 : 0, now, now)
    const task = this.taskNamed(taskId)
    if (task === undefined) throw new Error(`task ${taskId} is missing right after it was inserted`)
    return task
  }

  lane(id: number): LaneEntry {
    const lane = this.#lanes.get(id) ?? this.#keepLane(this.#sql.laneById.get(id))
    if (lane === undefined) throw new Error(`a partition belongs to lane row ${id}, which is missing`)
    return lane
  }

  laneOf(task: TaskEntry, level: number): LaneEntry | undefined {
    return this.#lanesOfTask.get(task)?.get(level) ?? this.#keepLane(this.#sql.laneOfTask.get(task.id, level))
  }

  createLane(task: TaskEntry, level: number): LaneEntry {
    this.#sql.insertLane.run(task.id, level)
    const lane = this.laneOf(task, level)
    if (lane === undefined)
      throw new Error(`lane ${level} of ${task.taskId} is missing right after it was inserted`)
    return lane
  }

  /** The level's time for ranking: brought up to date if nothing on the level waits. */
  levelToRank(level: number): LevelTime {
    const time = this.levelToAdvance(level)
    if (this.#sql.anyReady.get(level) === undefined) drain(time)
    return time
  }

  levelToAdvance(level: number): LevelTime {
    let time = this.#levels.get(level)
    if (time === undefined) {
      const row = this.#sql.level.get(level)
      time = {
        virtual: BigInt((row?.['virtual'] as string | undefined) ?? 0),
        served: BigInt((row?.['served'] as string | undefined) ?? 0),
      }
      this.#levels.set(level, time)
    }
    this.#touchedLevels.add(level)
    return time
  }

  isOpen(lane: LaneEntry): boolean {
    return isLaneOpen(lane.task, lane.level)
  }

  touch(entry: LaneEntry | TaskEntry): void {
    if ('task' in entry) this.#touchedLanes.add(entry)
    else this.#touchedTasks.add(entry)
  }

  /** Counts a partition from one state into another; `null` is the outside. */
  move(lane: LaneEntry, from: PartitionState | null, to: PartitionState | null, recordCount: number): void {
    for (const tally of [lane, lane.task]) {
      if (from !== null) {
        tally.partitions[from] -= 1
        tally.records[from] -= recordCount
      }
      if (to !== null) {
        tally.partitions[to] += 1
        tally.records[to] += recordCount
      }
    }
    this.#touchedLanes.add(lane)
    this.#touchedTasks.add(lane.task)
  }

  countFinished(task: TaskEntry, recordCount: number): void {
    const pace = this.#pace.get(task)
    if (pace === undefined) this.#pace.set(task, { partitions: 1, records: recordCount })
    else {
      pace.partitions += 1
      pace.records += recordCount
    }
  }

  touchedLanes(): readonly LaneEntry[] {
    return [...this.#touchedLanes]
  }

  /** Writes what the transaction changed; the last thing before its commit. Returns the tasks concerned. */
  flush(now: number): number[] {
    const tasks = [...this.#touchedTasks].map(({ id }) => id)
    for (const level of this.#touchedLevels) {
      const time = this.#levels.get(level)
      if (time !== undefined) this.#sql.saveLevel.run(level, time.virtual, time.served)
    }
    for (const lane of this.#touchedLanes) {
      const tags = [
        lane.finish,
        lane.retryFinish,
        lane.parkedSkipped ? 1 : 0,
        lane.purged,
        lane.purgedRecords,
      ]
      this.#sql.saveLane.run(...tags, ...counters(lane), lane.id)
    }
    for (const task of this.#touchedTasks) this.#saveTask(task, now)
    const second = Math.floor(now / 1000)
    for (const [task, pace] of this.#pace) {
      this.#sql.savePace.run(task.id, second, pace.partitions, pace.records)
      if (task.paceSecond !== second) this.#sql.forgetPace.run(task.id, task.id, PACE_SECONDS_KEPT)
      task.paceSecond = second
    }
    this.#touchedLevels.clear()
    this.#touchedLanes.clear()
    this.#touchedTasks.clear()
    this.#pace.clear()
    return tasks
  }

  /** After a commit: nothing is pending, so a large cache may go. */
  trim(): void {
    if (this.#lanes.size > CACHED_LANES || this.#tasks.size > CACHED_LANES) this.forget()
  }

  /** After a rollback: memory holds what the file does not. */
  forget(): void {
    for (const map of [this.#tasks, this.#taskIds, this.#lanes, this.#lanesOfTask, this.#levels, this.#pace])
      map.clear()
    for (const set of [this.#touchedTasks, this.#touchedLanes, this.#touchedLevels]) set.clear()
  }

  #saveTask(task: TaskEntry, now: number): void {
    const state = taskState(task)
    const finished = state === 'done' || state === 'cancelled'
    if (finished && task.finishedAt === null) task.finishedAt = now
    if (!finished) task.finishedAt = null
    task.state = state
    this.#sql.saveTask.run(
      state,
      task.paused ? 1 : 0,
      task.cancelled ? 1 : 0,
      task.sealed ? 1 : 0,
      task.expectedPartitions,
      task.levelBarrier ? 1 : 0,
      task.openLevel,
      task.generation,
      task.lastCallBackAt,
      task.finishedAt,
      task.purgedAt,
      task.delivered,
      task.attemptsWasted,
      task.reportedDeclared,
      task.reportedRecords,
      task.mismatched,
      ...counters(task),
      task.id,
    )
  }

  #keepTask(row: Record<string, unknown> | undefined): TaskEntry | undefined {
    if (row === undefined) return undefined
    const task = readTask(row)
    this.#tasks.set(task.id, task)
    this.#taskIds.set(task.taskId, task)
    return task
  }

  #keepLane(row: Record<string, unknown> | undefined): LaneEntry | undefined {
    if (row === undefined) return undefined
    const lane = readLane(row, this.task(row['task'] as number))
    this.#lanes.set(lane.id, lane)
    const siblings = this.#lanesOfTask.get(lane.task) ?? new Map<number, LaneEntry>()
    this.#lanesOfTask.set(lane.task, siblings.set(lane.level, lane))
    return lane
  }
}

function prepare(db: DatabaseSync) {
  return {
    taskByName: db.prepare('SELECT * FROM task WHERE task_id = ?'),
    taskById: db.prepare('SELECT * FROM task WHERE id = ?'),
    insertTask: db.prepare(
      `INSERT INTO task (task_id, state, level_barrier, first_call_back_at, last_call_back_at) VALUES (?, 'open', ?, ?, ?)`,
    ),
    saveTask: db.prepare(
      `UPDATE task SET state = ?, paused = ?, cancelled = ?, sealed = ?, expected_partitions = ?, level_barrier = ?,
         open_level = ?, generation = ?, last_call_back_at = ?, finished_at = ?, purged_at = ?, delivered = ?,
         attempts_wasted = ?, reported_declared = ?, reported_records = ?, mismatched = ?, ${assignCounters}
       WHERE id = ?`,
    ),
    laneById: db.prepare(`SELECT ${taggedLaneColumns} FROM lane WHERE id = ?`),
    laneOfTask: db.prepare(`SELECT ${taggedLaneColumns} FROM lane WHERE task = ? AND level = ?`),
    insertLane: db.prepare('INSERT INTO lane (task, level) VALUES (?, ?)'),
    saveLane: db.prepare(
      `UPDATE lane SET finish = ?, retry_finish = ?, parked_skipped = ?, purged = ?, purged_records = ?,
         ${assignCounters} WHERE id = ?`,
    ),
    level: db.prepare(
      'SELECT CAST(virtual AS TEXT) AS virtual, CAST(served AS TEXT) AS served FROM level WHERE level = ?',
    ),
    anyReady: db.prepare(`SELECT 1 AS found FROM partition WHERE state = 'ready' AND level = ? LIMIT 1`),
    saveLevel: db.prepare(
      `INSERT INTO level (level, virtual, served) VALUES (?, ?, ?)
       ON CONFLICT (level) DO UPDATE SET virtual = excluded.virtual, served = excluded.served`,
    ),
    savePace: db.prepare(
      `INSERT INTO pace (task, second, partitions, records) VALUES (?, ?, ?, ?)
       ON CONFLICT (task, second) DO UPDATE SET
         partitions = partitions + excluded.partitions,
         records = min(records + excluded.records, ${Number.MAX_SAFE_INTEGER})`,
    ),
    forgetPace: db.prepare(
      `DELETE FROM pace WHERE task = ? AND second <
         (SELECT second FROM pace WHERE task = ? ORDER BY second DESC LIMIT 1 OFFSET ?)`,
    ),
  }
}
