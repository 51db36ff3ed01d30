import type { DatabaseSync } from 'node:sqlite'
import type { LevelTime } from '../../handoff/rules/fair-order.ts'
import type { LaneEntry, TaskEntry } from '../../handoff/rules/task-entry.ts'
import { readLane, readTask, taggedLaneColumns, taskColumns } from './entries.ts'

/** More entries than this are dropped after a commit: memory must not follow the number of tasks. */
const CACHED_LANES = 20_000

export interface Reader {
  readTask(task: TaskEntry): void
  readLane(lane: LaneEntry): void
}

/** Tasks, lanes and levels that were read or made, each of them once: whoever asks again gets the same object. */
export class KnownEntries {
  readonly #tasks = new Map<number, TaskEntry>()
  readonly #taskIds = new Map<string, TaskEntry>()
  readonly #lanes = new Map<number, LaneEntry>()
  readonly #lanesOfTask = new Map<TaskEntry, Map<number, LaneEntry>>()
  readonly #levels = new Map<number, LevelTime>()
  readonly #reader: Reader
  readonly #sql: ReturnType<typeof prepare>

  /** `reader` is shown each entry as its row has it. */
  constructor(db: DatabaseSync, reader: Reader) {
    this.#sql = prepare(db)
    this.#reader = reader
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

  level(level: number): LevelTime {
    const known = this.#levels.get(level)
    if (known !== undefined) return known
    const row = this.#sql.level.get(level)
    const time = {
      virtual: BigInt((row?.['virtual'] as string | undefined) ?? 0),
      served: BigInt((row?.['served'] as string | undefined) ?? 0),
    }
    this.#levels.set(level, time)
    return time
  }

  get isFull(): boolean {
    return this.#lanes.size > CACHED_LANES || this.#tasks.size > CACHED_LANES
  }

  forget(): void {
    for (const map of [this.#tasks, this.#taskIds, this.#lanes, this.#lanesOfTask, this.#levels]) map.clear()
  }

  #keepTask(row: Record<string, unknown> | undefined): TaskEntry | undefined {
    if (row === undefined) return undefined
    const task = readTask(row)
    this.#reader.readTask(task)
    this.#tasks.set(task.id, task)
    this.#taskIds.set(task.taskId, task)
    return task
  }

  #keepLane(row: Record<string, unknown> | undefined): LaneEntry | undefined {
    if (row === undefined) return undefined
    const lane = readLane(row, this.task(row['task'] as number))
    this.#reader.readLane(lane)
    this.#lanes.set(lane.id, lane)
    const siblings = this.#lanesOfTask.get(lane.task) ?? new Map<number, LaneEntry>()
    this.#lanesOfTask.set(lane.task, siblings.set(lane.level, lane))
    return lane
  }
}

function prepare(db: DatabaseSync) {
  return {
    taskByName: db.prepare(`SELECT ${taskColumns} FROM task WHERE task_id = ?`),
    taskById: db.prepare(`SELECT ${taskColumns} FROM task WHERE id = ?`),
    insertTask: db.prepare(
      `INSERT INTO task (task_id, state, level_barrier, first_call_back_at, last_call_back_at) VALUES (?, 'open', ?, ?, ?)`,
    ),
    laneById: db.prepare(`SELECT ${taggedLaneColumns} FROM lane WHERE id = ?`),
    laneOfTask: db.prepare(`SELECT ${taggedLaneColumns} FROM lane WHERE task = ? AND level = ?`),
    insertLane: db.prepare('INSERT INTO lane (task, level) VALUES (?, ?)'),
    level: db.prepare(
      'SELECT CAST(virtual AS TEXT) AS virtual, CAST(served AS TEXT) AS served FROM level WHERE level = ?',
    ),
  }
}
