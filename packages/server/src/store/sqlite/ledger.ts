import type { DatabaseSync } from 'node:sqlite'
import type { LevelTime } from '../../handoff/fair-order.ts'
import { isLaneOpen } from '../../handoff/lane-rules.ts'
import type { PartitionState } from '../../handoff/life-cycle.ts'
import { bringUpToDate, decidingLevel } from '../../handoff/task-course.ts'
import type { LaneEntry, TaskEntry } from '../../handoff/task-entry.ts'
import { ChangedEntries } from './changed-entries.ts'
import { readLane, readTask, taggedLaneColumns, taskColumns, type Value } from './entries.ts'
import {
  changed,
  type LedgerRows,
  laneFacts,
  laneRow,
  levelRow,
  prepareSaving,
  taskFacts,
  taskRow,
} from './ledger-rows.ts'
import { Moves } from './moves.ts'
import { Pace } from './pace.ts'

/** More entries than this are dropped after a commit: memory must not follow the number of tasks. */
const CACHED_LANES = 20_000

/**
 * Tasks, lanes and levels as the running transaction sees them.
 *
 * Hundreds of partitions share a handful of these rows: they are read once, changed in memory, noted
 * in the journal at the commit, and written when the books are. This process is the only writer of the
 * file, so what was committed stays valid for the next transaction; after a rollback everything is
 * forgotten.
 */
export class Ledger {
  readonly #tasks = new Map<number, TaskEntry>()
  readonly #taskIds = new Map<string, TaskEntry>()
  readonly #lanes = new Map<number, LaneEntry>()
  readonly #lanesOfTask = new Map<TaskEntry, Map<number, LaneEntry>>()
  readonly #levels = new Map<number, LevelTime>()
  /** By the running transaction. */
  readonly #touched = new ChangedEntries()
  /** Since their rows were written. */
  readonly #unwritten = new ChangedEntries()
  /** What journal and rows say of tasks and lanes, beside tags and counters. */
  readonly #noted = new Map<object, readonly Value[]>()
  readonly #moves: Moves
  readonly #pace: Pace
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
    this.#moves = new Moves(db)
    this.#pace = new Pace(db)
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

  /** What it takes to tell a task's state, beside the task. */
  decidingLane(task: TaskEntry): LaneEntry | null {
    const level = decidingLevel(task)
    return (level === null ? undefined : this.laneOf(task, level)) ?? null
  }

  levelToAdvance(level: number): LevelTime {
    this.#touched.levels.add(level)
    return this.#levelTime(level)
  }

  #levelTime(level: number): LevelTime {
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

  isOpen(lane: LaneEntry): boolean {
    return isLaneOpen(lane.task, lane.level)
  }

  touch(entry: LaneEntry | TaskEntry): void {
    if ('task' in entry) this.#touched.lanes.add(entry)
    else this.#touched.tasks.add(entry)
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
    this.#moves.count(lane, from, to, recordCount)
    this.#touched.lanes.add(lane)
    this.#touched.tasks.add(lane.task)
  }

  countFinished(task: TaskEntry, recordCount: number): void {
    this.#pace.count(task, recordCount)
  }

  touchedLanes(): readonly LaneEntry[] {
    return [...this.#touched.lanes]
  }

  /** Ends the running transaction's part. Returns the tasks concerned, and the rows as they are to be. */
  close(now: number): { tasks: number[]; rows: LedgerRows } {
    const { levels, lanes, tasks } = this.#touched
    for (const task of tasks) bringUpToDate(task, this.decidingLane(task), now)
    const rows = {
      levels: this.#levelRows(levels),
      moves: this.#moves.close(lanes),
      lanes: changed(lanes, laneFacts, this.#noted).map(laneRow),
      tasks: changed(tasks, taskFacts, this.#noted).map(taskRow),
      paces: this.#pace.close(now),
    }
    const ids = [...tasks].map(({ id }) => id)
    this.#unwritten.add(this.#touched)
    this.#touched.clear()
    return { tasks: ids, rows }
  }

  /**
   * Writes what closed transactions changed, and what the running one has changed so far: rows say how things stand,
   * so what it counted until now must not be counted again from the journal.
   */
  write(): void {
    this.#unwritten.add(this.#touched)
    const { levels, lanes, tasks } = this.#unwritten
    this.#moves.forget()
    for (const lane of lanes) this.#noted.set(lane, laneFacts(lane))
    for (const task of tasks) this.#noted.set(task, taskFacts(task))
    this.#save({
      levels: this.#levelRows(levels),
      lanes: [...lanes].map(laneRow),
      tasks: [...tasks].map(taskRow),
    })
    this.#pace.write()
    this.#unwritten.clear()
  }

  /** How many changed since they were written. */
  get unwrittenLanes(): number {
    return this.#unwritten.lanes.size
  }

  get isWritten(): boolean {
    return this.#unwritten.isEmpty
  }

  replay(rows: LedgerRows): void {
    this.#moves.replay(rows.moves)
    this.#save(rows)
    this.#pace.replay(rows.paces)
  }

  get isFull(): boolean {
    return this.#lanes.size > CACHED_LANES || this.#tasks.size > CACHED_LANES
  }

  forget(): void {
    for (const map of [this.#tasks, this.#taskIds, this.#lanes, this.#lanesOfTask, this.#levels]) map.clear()
    this.#touched.clear()
    this.#unwritten.clear()
    this.#noted.clear()
    this.#moves.forget()
    this.#pace.forget()
  }

  #levelRows(levels: Iterable<number>): LedgerRows['levels'] {
    return [...levels].map((level) => levelRow(level, this.#levelTime(level)))
  }

  #save({ levels, lanes, tasks }: Pick<LedgerRows, 'levels' | 'lanes' | 'tasks'>): void {
    for (const row of levels) this.#sql.saveLevel.run(...row)
    for (const row of lanes) this.#sql.saveLane.run(...row)
    for (const row of tasks) this.#sql.saveTask.run(...row)
  }

  #keepTask(row: Record<string, unknown> | undefined): TaskEntry | undefined {
    if (row === undefined) return undefined
    const task = readTask(row)
    this.#noted.set(task, taskFacts(task))
    this.#tasks.set(task.id, task)
    this.#taskIds.set(task.taskId, task)
    return task
  }

  #keepLane(row: Record<string, unknown> | undefined): LaneEntry | undefined {
    if (row === undefined) return undefined
    const lane = readLane(row, this.task(row['task'] as number))
    this.#noted.set(lane, laneFacts(lane))
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
    ...prepareSaving(db),
  }
}
