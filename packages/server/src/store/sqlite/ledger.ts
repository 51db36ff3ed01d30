import type { DatabaseSync } from 'node:sqlite'
import type { LevelTime } from '../../handoff/rules/fair-order.ts'
import { isLaneOpen } from '../../handoff/rules/lane-rules.ts'
import type { PartitionState } from '../../handoff/rules/life-cycle.ts'
import { bringUpToDate, decidingLevel } from '../../handoff/rules/task-course.ts'
import type { LaneEntry, TaskEntry } from '../../handoff/rules/task-entry.ts'
import { ChangedEntries } from './changed-entries.ts'
import type { Value } from './entries.ts'
import { KnownEntries } from './known-entries.ts'
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

/**
 * Tasks, lanes and levels as the running transaction sees them.
 *
 * Hundreds of partitions share a handful of these rows: they are read once, changed in memory, noted
 * in the journal at the commit, and written when the books are. This process is the only writer of the
 * file, so what was committed stays valid for the next transaction; after a rollback everything is
 * forgotten.
 */
export class Ledger {
  readonly entries: KnownEntries
  /** By the running transaction. */
  readonly #touched = new ChangedEntries()
  /** Since their rows were written. */
  readonly #unwritten = new ChangedEntries()
  /** What journal and rows say of tasks and lanes, beside tags and counters. */
  readonly #noted = new Map<object, readonly Value[]>()
  readonly #moves: Moves
  readonly #pace: Pace
  readonly #sql: ReturnType<typeof prepareSaving>

  constructor(db: DatabaseSync) {
    this.#sql = prepareSaving(db)
    this.entries = new KnownEntries(db, {
      readTask: (task) => this.#noted.set(task, taskFacts(task)),
      readLane: (lane) => this.#noted.set(lane, laneFacts(lane)),
    })
    this.#moves = new Moves(db)
    this.#pace = new Pace(db)
  }

  /** What it takes to tell a task's state, beside the task. */
  decidingLane(task: TaskEntry): LaneEntry | null {
    const level = decidingLevel(task)
    return (level === null ? undefined : this.entries.laneOf(task, level)) ?? null
  }

  levelToAdvance(level: number): LevelTime {
    this.#touched.levels.add(level)
    return this.entries.level(level)
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
    return this.entries.isFull
  }

  forget(): void {
    this.entries.forget()
    this.#touched.clear()
    this.#unwritten.clear()
    this.#noted.clear()
    this.#moves.forget()
    this.#pace.forget()
  }

  #levelRows(levels: Iterable<number>): LedgerRows['levels'] {
    return [...levels].map((level) => levelRow(level, this.entries.level(level)))
  }

  #save({ levels, lanes, tasks }: Pick<LedgerRows, 'levels' | 'lanes' | 'tasks'>): void {
    for (const row of levels) this.#sql.saveLevel.run(...row)
    for (const row of lanes) this.#sql.saveLane.run(...row)
    for (const row of tasks) this.#sql.saveTask.run(...row)
  }
}
