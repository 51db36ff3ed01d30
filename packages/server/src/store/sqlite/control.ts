import type { DatabaseSync } from 'node:sqlite'
import type { ControlOrder, ControlResult, RetryOrder } from '../../handoff/rules/control.ts'
import { type Applied, type Effect, effectOf, mayPass, refusalOf } from '../../handoff/rules/control-rules.ts'
import { next, type PartitionState } from '../../handoff/rules/life-cycle.ts'
import { taskState } from '../../handoff/rules/task-course.ts'
import type { LaneEntry, TaskEntry } from '../../handoff/rules/task-entry.ts'
import { type Lanes, STEP } from './lanes.ts'
import type { Ledger } from './ledger.ts'
import { query } from './query.ts'
import { oneByOne, type Steps } from './steps.ts'
import type { DoneRow, TaskSteps } from './task-steps.ts'

/** Orders to a task. The flag counts from this transaction on; rows follow in steps. */
export class Control {
  readonly #ledger: Ledger
  readonly #lanes: Lanes
  readonly #steps: TaskSteps
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync, ledger: Ledger, lanes: Lanes, steps: TaskSteps) {
    this.#ledger = ledger
    this.#lanes = lanes
    this.#steps = steps
    this.#sql = prepare(db)
  }

  *run(order: ControlOrder, now: number): Steps<ControlResult> {
    const task = this.#ledger.entries.taskNamed(order.taskId)
    if (task === undefined) return { kind: 'task_unknown' }
    const refusal = refusalOf(task, order)
    if (refusal !== undefined) return refusal
    const outcome = yield* this.#apply(task, order, now)
    if ('kind' in outcome) return outcome
    this.#ledger.touch(task)
    const { changed, readied = 0, more = false } = outcome
    return {
      kind: 'applied',
      state: taskState(task, this.#ledger.decidingLane(task)),
      changed,
      readied,
      more,
    }
  }

  *#apply(task: TaskEntry, order: ControlOrder, now: number): Steps<Applied | ControlResult> {
    if (order.verb === 'retry') return yield* this.#retry(task, order, now)
    if (order.verb === 'skip-parked') return this.#skipParked(task)
    return this.#carryOut(task, effectOf(task, order), now)
  }

  #carryOut(task: TaskEntry, effect: Effect, now: number): Applied {
    const { changed, holdsFirst, flags, drops = [], begins, placesBarrier, advances, holds } = effect
    if (holdsFirst && this.#holdClosed(task)) return { changed: 0, more: true }
    Object.assign(task, flags)
    if (changed > 0) this.#lanes.mayOpen()
    for (const step of drops) this.#steps.drop(task, step)
    if (begins !== undefined) this.#steps.begin(task, begins, now)
    const readied = placesBarrier ? this.#lanes.placeBarrier(task) : 0
    if (advances !== undefined) return { ...this.#steps.advance(task, advances), changed }
    return { changed, readied, more: holds === true && this.#holdClosed(task) }
  }

  /** Lets the barrier pass what is parked on the open level, and on those that it then opens. */
  #skipParked(task: TaskEntry): Applied {
    let changed = 0
    let readied = 0
    while (task.levelBarrier && task.openLevel !== null && changed < STEP) {
      const lane = this.#ledger.entries.laneOf(task, task.openLevel)
      if (!mayPass(lane)) break
      lane.parkedSkipped = true
      this.#ledger.touch(lane)
      changed += 1
      readied += this.#lanes.moveBarrier(task)
    }
    return { changed, readied, more: changed === STEP }
  }

  *#retry(task: TaskEntry, order: RetryOrder, now: number): Steps<Applied | ControlResult> {
    if (order.partitions !== null) return yield* this.#retryNamed(task, order.partitions, order.done)
    if (order.level !== null && this.#ledger.entries.laneOf(task, order.level) === undefined)
      return { kind: 'level_unknown' }
    const parked = this.#sql.lanesWithParked.all(task.id, ...levelsOf(order.level), STEP)
    const progress = this.#retryParked(parked.map(({ id }) => this.#ledger.entries.lane(id)))
    if (!order.done || progress.more) return progress
    const rerun = this.#rerun(task, order.level, now)
    return { changed: progress.changed + rerun.changed, readied: progress.readied + rerun.readied }
  }

  /**
   * Upkeep does what is left after the first step, and nothing more is asked of whoever gave the
   * order: repeated when upkeep is done already, it would begin anew.
   */
  #rerun(task: TaskEntry, level: number | null, now: number): { changed: number; readied: number } {
    const done = this.#sql.doneRows.get(task.id, ...levelsOf(level))?.['rows'] as number
    const begun = this.#steps.begin(task, 'rerun', now, level ?? undefined)
    const { readied } = this.#steps.advance(task, 'rerun', level ?? undefined)
    return { changed: begun ? done : 0, readied }
  }

  #retryParked(lanes: readonly LaneEntry[]): { changed: number; readied: number; more: boolean } {
    let changed = 0
    for (const lane of lanes) {
      const rows = this.#sql.parked.all(lane.id, STEP - changed)
      for (const row of rows) this.#retryOne(lane, row)
      changed += rows.length
      if (changed === STEP) break
    }
    return { changed, readied: this.#lanes.settle(lanes), more: changed === STEP }
  }

  #retryOne(lane: LaneEntry, row: ParkedRow): void {
    const to = next('parked', 'retry')
    lane.parkedSkipped = false
    this.#sql.retry.run(to, row.id)
    this.#ledger.move(lane, 'parked', to, row.recordCount)
  }

  *#retryNamed(
    task: TaskEntry,
    named: readonly { level: number; index: number }[],
    done: boolean,
  ): Steps<Applied | ControlResult> {
    const unknown: number[] = []
    // One that is named twice is read twice, and moves once.
    const once = new Map<number, { lane: LaneEntry; row: NamedRow }>()
    yield* oneByOne(named, ({ level, index }, position) => {
      const lane = this.#ledger.entries.laneOf(task, level)
      const row = lane && this.#sql.identity.get(lane.id, index)
      if (lane === undefined || row === undefined) unknown.push(position)
      else once.set(row.id, { lane, row })
    })
    if (unknown.length > 0) return { kind: 'partitions_unknown', positions: unknown }
    const touched = new Set<LaneEntry>()
    let changed = 0
    yield* oneByOne([...once.values()], ({ lane, row }) => {
      if (row.state === 'parked') this.#retryOne(lane, row)
      else if (row.state === 'done' && done) this.#steps.rerun(lane, row)
      else return
      touched.add(lane)
      changed += 1
    })
    return { changed, readied: this.#lanes.settle([...touched]) }
  }

  /** One step of taking a task's closed lanes out of the reach of pulls; true while some is left. */
  #holdClosed(task: TaskEntry): boolean {
    // All but one of these are closed, and each has something to hold.
    for (const { id } of this.#sql.lanesWithReady.all(task.id, STEP + 1)) {
      if (!this.#lanes.mayHold) return true
      const lane = this.#ledger.entries.lane(id)
      if (!this.#ledger.isOpen(lane)) this.#lanes.hold(lane)
    }
    return !this.#lanes.mayHold
  }
}

/** The first and the last that are meant: all of them unless one is named. */
const levelsOf = (level: number | null): [number, number] =>
  level === null ? [0, Number.MAX_SAFE_INTEGER] : [level, level]

type ParkedRow = Pick<DoneRow, 'id' | 'recordCount'>

interface NamedRow extends DoneRow {
  readonly state: PartitionState
}

function prepare(db: DatabaseSync) {
  return {
    lanesWithReady: query<{ id: number }>(
      db,
      'SELECT id FROM lane WHERE task = ? AND ready_partitions > 0 ORDER BY level LIMIT ?',
    ),
    lanesWithParked: query<{ id: number }>(
      db,
      `SELECT id FROM lane WHERE task = ? AND level BETWEEN ? AND ? AND parked_partitions > 0
       ORDER BY level LIMIT ?`,
    ),
    parked: query<ParkedRow>(
      db,
      `SELECT id, record_count AS recordCount FROM partition WHERE lane = ? AND state = 'parked' ORDER BY idx LIMIT ?`,
    ),
    doneRows: db.prepare(
      'SELECT coalesce(sum(done_partitions - purged), 0) AS rows FROM lane WHERE task = ? AND level BETWEEN ? AND ?',
    ),
    retry: db.prepare(
      'UPDATE partition SET state = ?, rank = NULL, fresh = 1, attempts = 0, releases = 0 WHERE id = ?',
    ),
    identity: query<NamedRow>(
      db,
      `SELECT id, state, outcome, record_count AS recordCount, reported_records AS reportedRecords
       FROM partition WHERE lane = ? AND idx = ?`,
    ),
  }
}
