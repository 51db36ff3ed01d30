import type { PartitionState } from '../../../handoff/rules/life-cycle.ts'
import { addCapped } from '../../../handoff/rules/tally.ts'
import { bringUpToDate, decidingLevel } from '../../../handoff/rules/task-course.ts'
import type { LaneEntry, TaskEntry } from '../../../handoff/rules/task-entry.ts'
import { takeDeltas } from '../counters/unfolded.ts'
import { addTallies, moveTallies, readTask, taskColumns } from '../rows/entries.ts'
import { ROLL_LOCK } from '../session/advisory-locks.ts'
import { NOW, type Row, statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import { KnownLanes } from './known-lanes.ts'
import { saveLanes, saveLevels, savePace, saveParked, saveTasks } from './roll-rows.ts'

const rolling = `setval('baton.rolled_at', ${NOW})`
const lock = statement('lock-roll', `SELECT pg_advisory_xact_lock(${ROLL_LOCK}), ${rolling}`)
/** Unless it was anybody's turn within so many milliseconds. */
const lockForTurn = statement(
  'lock-roll-for-turn',
  `SELECT CASE WHEN ${NOW} - (SELECT last_value FROM baton.rolled_at) >= $1 AND pg_try_advisory_xact_lock(${ROLL_LOCK})
     THEN ${rolling} > 0 ELSE false END AS locked`,
)
const unfoldedTasks = statement(
  'lock-unfolded-tasks',
  `SELECT ${taskColumns('t')} FROM baton.task t WHERE id = ANY (ARRAY(SELECT DISTINCT task FROM baton.count_delta)) ORDER BY id FOR NO KEY UPDATE`,
)
const unfoldedTasksAtHand = statement('lock-unfolded-tasks-at-hand', `${unfoldedTasks.text} SKIP LOCKED`)
const taskById = statement(
  'lock-task-by-id',
  `SELECT ${taskColumns('t')} FROM baton.task t WHERE id = $1 FOR NO KEY UPDATE`,
)
const taskByName = statement(
  'lock-task-by-name',
  `SELECT ${taskColumns('t')} FROM baton.task t WHERE task_id = $1 FOR NO KEY UPDATE`,
)
const doneRows = statement(
  'roll-done-rows',
  `SELECT coalesce(sum(done_partitions - purged), 0)::bigint AS rows FROM baton.lane
   WHERE task = $1 AND ($2::bigint IS NULL OR level = $2)`,
)
const doneRowsOf = statement(
  'roll-done-rows-of-lanes',
  'SELECT coalesce(sum(done_partitions - purged), 0)::bigint AS rows FROM baton.lane WHERE id = ANY($1::bigint[])',
)

/**
 * A transaction that may decide by counters. It holds the roll lock and the rows of the tasks it
 * concerns, so their counters and flags are exact and nobody else's; the tags of a lane it locks
 * with the lane's row. Rows are changed in memory and written once before the commit.
 */
export class Roll {
  readonly tx: Transaction
  readonly lanes: KnownLanes
  readonly #tasks = new Map<number, TaskEntry>()
  readonly #touchedTasks = new Set<TaskEntry>()
  readonly #touchedLanes = new Set<LaneEntry>()
  /** When the last of the partitions that were folded in finished, by task. */
  readonly #finishedAt = new Map<TaskEntry, number>()

  private constructor(tx: Transaction) {
    this.tx = tx
    this.lanes = new KnownLanes(tx, (id) => this.#tasks.get(id))
  }

  /** Waits until nobody else is at it. */
  static async begin(tx: Transaction): Promise<Roll> {
    await tx.run(lock)
    return new Roll(tx)
  }

  /** Undefined when somebody else is at it, or was within so many milliseconds. */
  static async beginTurn(tx: Transaction, millis: number): Promise<Roll | undefined> {
    const [row] = await tx.run(lockForTurn, [millis])
    return row?.['locked'] === true ? new Roll(tx) : undefined
  }

  /**
   * Folds in what was counted for all tasks. With `wait` off, tasks that a call-back holds at the
   * moment are left for the next time. Returns the lanes whose counters changed.
   */
  async foldAll(wait: boolean): Promise<LaneEntry[]> {
    const rows = await this.tx.run(wait ? unfoldedTasks : unfoldedTasksAtHand)
    const tasks = rows.map((row) => this.#keepTask(row))
    return tasks.length === 0 ? [] : this.#fold(tasks)
  }

  /** One task alone, exact. */
  async foldTask(name: string | number): Promise<{ task: TaskEntry; lanes: LaneEntry[] } | undefined> {
    const [row] = await this.tx.run(typeof name === 'number' ? taskById : taskByName, [name])
    if (row === undefined) return undefined
    const task = this.#keepTask(row)
    return { task, lanes: await this.#fold([task]) }
  }

  /** Partitions of a task that are done and whose rows are still there, within some levels. */
  async doneRows(task: TaskEntry, level: number | null): Promise<number> {
    const [row] = await this.tx.run(doneRows, [task.id, level])
    const own = [...this.#touchedLanes].filter(
      (lane) => lane.task === task && (level === null || lane.level === level),
    )
    const [stored] = own.length === 0 ? [] : await this.tx.run(doneRowsOf, [own.map(({ id }) => id)])
    const difference = own.reduce((sum, { partitions, purged }) => sum + partitions.done - purged, 0)
    return (row?.['rows'] as number) + difference - ((stored?.['rows'] as number | undefined) ?? 0)
  }

  move(lane: LaneEntry, from: PartitionState | null, to: PartitionState | null, recordCount: number): void {
    moveTallies(lane, from, to, recordCount)
    moveTallies(lane.task, from, to, recordCount)
    this.touch(lane)
  }

  touch(entry: LaneEntry | TaskEntry): void {
    if ('task' in entry) this.#touchedLanes.add(entry)
    this.#touchedTasks.add('task' in entry ? entry.task : entry)
  }

  get touchedLanes(): readonly LaneEntry[] {
    return [...this.#touchedLanes]
  }

  /** What it takes to tell a task's state, beside the task. */
  async decidingLane(task: TaskEntry): Promise<LaneEntry | null> {
    const level = decidingLevel(task)
    return (level === null ? undefined : await this.lanes.of(task, level)) ?? null
  }

  /** Writes what the transaction changed; the last thing before its commit. */
  async flush(): Promise<void> {
    if (this.#touchedTasks.size === 0) return
    const now = await this.tx.now()
    await this.lanes.readOf(
      [...this.#touchedTasks].flatMap((task) => {
        const level = decidingLevel(task)
        return level === null ? [] : [{ task, level }]
      }),
    )
    // Work ends a task when its last partition finished, which may be a while ago; an order ends it now.
    for (const task of this.#touchedTasks) {
      const at = task.cancelled ? now : (this.#finishedAt.get(task) ?? now)
      bringUpToDate(task, await this.decidingLane(task), at)
    }
    saveLanes(this.tx, [...this.#touchedLanes])
    saveTasks(this.tx, [...this.#touchedTasks])
  }

  async #fold(tasks: readonly TaskEntry[]): Promise<LaneEntry[]> {
    const sums = await takeDeltas(
      this.tx,
      tasks.map(({ id }) => id),
    )
    if (sums.length === 0) return []
    const lanes = new Set(sums.flatMap(({ row }) => (row['lane'] as number | null) ?? []))
    await this.lanes.read(lanes)
    for (const { task: taskId, row } of sums) {
      const task = this.#tasks.get(taskId)
      if (task === undefined) throw new Error(`counters of task row ${taskId} were taken without its lock`)
      addTallies(task, row)
      // Others may have come after it: a call-back that brings nothing new is told to the roller, too.
      if (row['second'] !== null)
        this.#finishedAt.set(task, Math.max(number(row, 'at'), this.#finishedAt.get(task) ?? 0))
      task.delivered += number(row, 'delivered')
      task.attemptsWasted += number(row, 'attempts_wasted')
      task.reportedDeclared += number(row, 'reported_declared')
      task.reportedRecords = addCapped(task.reportedRecords, number(row, 'reported_records'))
      task.mismatched += number(row, 'mismatched')
      this.touch(task)
      const lane = this.lanes.known(row['lane'] as number)
      if (lane === undefined) continue
      addTallies(lane, row)
      this.touch(lane)
    }
    saveLevels(this.tx, sums)
    savePace(this.tx, sums)
    saveParked(this.tx, sums)
    return [...lanes].flatMap((id) => this.lanes.known(id) ?? [])
  }

  #keepTask(row: Row): TaskEntry {
    const known = this.#tasks.get(row['id'] as number)
    if (known !== undefined) return known
    const task = readTask(row)
    this.#tasks.set(task.id, task)
    return task
  }
}

const number = (row: Row, column: string) => (row[column] as number | null) ?? 0
