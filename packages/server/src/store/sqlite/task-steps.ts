import type { DatabaseSync } from 'node:sqlite'
import type { Step } from '../../handoff/rules/control-rules.ts'
import { next } from '../../handoff/rules/life-cycle.ts'
import { type Finished, takeBack } from '../../handoff/rules/task-course.ts'
import type { LaneEntry, TaskEntry } from '../../handoff/rules/task-entry.ts'
import { type Lanes, STEP } from './lanes.ts'
import type { Ledger } from './ledger.ts'
import { query } from './query.ts'

interface StepRow {
  readonly task: number
  readonly step: Step
  readonly level: number
  readonly idx: number
  readonly only_level: number
  readonly begun_at: number
}

const ALL_LEVELS = -1

export interface DoneRow extends Finished {
  readonly id: number
}

interface Progress {
  changed: number
  readied: number
  more: boolean
}

export class TaskSteps {
  readonly #ledger: Ledger
  readonly #lanes: Lanes
  #lastTask = 0
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync, ledger: Ledger, lanes: Lanes) {
    this.#ledger = ledger
    this.#lanes = lanes
    this.#sql = prepare(db)
  }

  /** False when the same step is under way already. */
  begin(task: TaskEntry, step: Step, now: number, onlyLevel = ALL_LEVELS): boolean {
    if (step === 'rerun') task.rerunning = true
    const lastDone = this.#sql.lastDoneSecond.get(task.id)?.['second'] as number | null
    // A clock that was set back since may be behind what is done: that is meant all the same.
    const begunAt = lastDone !== null && lastDone * 1000 > now ? lastDone * 1000 + 999 : now
    return this.#sql.begin.run(task.id, step, Math.max(onlyLevel, 0), onlyLevel, begunAt).changes === 1
  }

  /** A pause or a cancel overtakes what an earlier order left to do. */
  drop(task: TaskEntry, step: Step): void {
    if (step === 'rerun') task.rerunning = false
    this.#sql.drop.run(task.id, step)
  }

  #end(task: TaskEntry, { step, only_level }: StepRow): void {
    this.#sql.end.run(task.id, step, only_level)
    if (step !== 'rerun') return
    // The same may be under way on another level.
    task.rerunning = this.#sql.isRerunning.get(task.id) !== undefined
    this.#ledger.touch(task)
  }

  /** One bounded transaction's worth of a task's step. */
  advance(task: TaskEntry, step: Step, onlyLevel = ALL_LEVELS): Progress {
    const row = this.#sql.of.get(task.id, step, onlyLevel)
    return row === undefined ? { changed: 0, readied: 0, more: false } : this.#advance(row)
  }

  /** By turns: the step of a small task does not wait until a large one is through, or one that fails. */
  advanceAny(): Progress {
    const { taskAfter } = this.#sql
    const next = taskAfter.get(this.#lastTask) ?? taskAfter.get(0)
    if (next === undefined) return { changed: 0, readied: 0, more: false }
    // Before its row is read: one that cannot be is not the first again next time.
    this.#lastTask = next.task
    const row = this.#sql.anyOf.get(next.task)
    return row === undefined ? { changed: 0, readied: 0, more: false } : this.#advance(row)
  }

  #advance(row: StepRow): Progress {
    const task = this.#ledger.entries.task(row.task)
    const progress: Progress = { changed: 0, readied: 0, more: false }
    let at = { level: row.level, index: row.idx }
    let visited = 0
    while (progress.changed < STEP && visited < STEP) {
      const lane = this.#laneFrom(task, at.level, row.only_level)
      if (lane === undefined) {
        this.#end(task, row)
        return progress
      }
      const index = lane.level === at.level ? at.index : -1
      const left = STEP - progress.changed
      const after = this.#workOn(row, lane, index, left, progress)
      at = after === null ? { level: lane.level + 1, index: -1 } : { level: lane.level, index: after }
      visited += 1
    }
    // No lane is behind the largest level, and the file would not give the number back.
    if (at.level > Number.MAX_SAFE_INTEGER) {
      this.#end(task, row)
      return progress
    }
    this.#sql.save.run(at.level, at.index, row.task, row.step, row.only_level)
    return { ...progress, more: true }
  }

  #laneFrom(task: TaskEntry, level: number, onlyLevel: number): LaneEntry | undefined {
    const row = this.#sql.laneFrom.get(task.id, level)
    if (row === undefined || (onlyLevel !== ALL_LEVELS && row.level !== onlyLevel)) return undefined
    return this.#ledger.entries.lane(row.id)
  }

  /** Returns the index to go on from within the lane, or null when the lane needs no more. */
  #workOn(row: StepRow, lane: LaneEntry, after: number, limit: number, progress: Progress): number | null {
    switch (row.step) {
      case 'fill': {
        const readied = this.#lanes.fill(lane)
        progress.readied += readied
        progress.changed += readied
        return null
      }
      case 'cancel': {
        const cancelled = this.#cancelWaiting(lane, limit)
        progress.changed += cancelled
        return cancelled === limit ? after : null
      }
      case 'rerun':
        return this.#rerunDone(row.begun_at, lane, after, limit, progress)
    }
  }

  /** Leased and delayed partitions follow when their time ends; nothing can be done with them until then. */
  #cancelWaiting(lane: LaneEntry, limit: number): number {
    let cancelled = 0
    for (const state of ['ready', 'held', 'parked'] as const) {
      const rows = this.#sql[state].all(lane.id, limit - cancelled)
      for (const row of rows) {
        const to = next(state, 'cancel')
        this.#sql.cancel.run(to, row.id)
        this.#ledger.move(lane, state, to, row.record_count)
      }
      cancelled += rows.length
    }
    return cancelled
  }

  #rerunDone(
    begunAt: number,
    lane: LaneEntry,
    after: number,
    limit: number,
    progress: Progress,
  ): number | null {
    if (lane.partitions.done === lane.purged) return null
    const rows = this.#sql.from.all(lane.id, after, limit)
    for (const row of rows) {
      if (row.state !== 'done' || (row.settled_at ?? 0) > begunAt) continue
      this.rerun(lane, row)
      progress.changed += 1
    }
    progress.readied += this.#lanes.settle([lane])
    return rows.length < limit ? null : (rows.at(-1)?.idx ?? null)
  }

  /** As if it had just been called back; whoever finished it before no longer holds a lease of it. */
  rerun(lane: LaneEntry, row: DoneRow): void {
    const to = next('done', 'rerun')
    takeBack(lane.task, [row])
    this.#sql.rerun.run(to, row.id)
    this.#ledger.move(lane, 'done', to, row.recordCount)
  }
}

function prepare(db: DatabaseSync) {
  const waiting = (state: string) =>
    query<{ id: number; record_count: number }>(
      db,
      `SELECT id, record_count FROM partition WHERE lane = ? AND state = '${state}' LIMIT ?`,
    )
  return {
    begin: db.prepare(
      `INSERT INTO task_step (task, step, level, only_level, begun_at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO NOTHING`,
    ),
    of: query<StepRow>(db, 'SELECT * FROM task_step WHERE task = ? AND step = ? AND only_level = ?'),
    anyOf: query<StepRow>(db, 'SELECT * FROM task_step WHERE task = ? LIMIT 1'),
    taskAfter: query<{ task: number }>(db, 'SELECT task FROM task_step WHERE task > ? ORDER BY task LIMIT 1'),
    isRerunning: db.prepare(`SELECT 1 FROM task_step WHERE task = ? AND step = 'rerun' LIMIT 1`),
    lastDoneSecond: db.prepare('SELECT max(second) AS second FROM pace WHERE task = ?'),
    save: db.prepare(
      'UPDATE task_step SET level = ?, idx = ? WHERE task = ? AND step = ? AND only_level = ?',
    ),
    end: db.prepare('DELETE FROM task_step WHERE task = ? AND step = ? AND only_level = ?'),
    drop: db.prepare('DELETE FROM task_step WHERE task = ? AND step = ?'),
    laneFrom: query<{ id: number; level: number }>(
      db,
      'SELECT id, level FROM lane WHERE task = ? AND level >= ? ORDER BY level LIMIT 1',
    ),
    ready: waiting('ready'),
    held: waiting('held'),
    parked: waiting('parked'),
    cancel: db.prepare('UPDATE partition SET state = ?, rank = NULL, due_at = NULL WHERE id = ?'),
    from: query<DoneRow & { idx: number; state: string; settled_at: number | null }>(
      db,
      `SELECT id, idx, state, outcome, settled_at, record_count AS recordCount, reported_records AS reportedRecords FROM partition
       WHERE lane = ? AND idx > ? ORDER BY idx LIMIT ?`,
    ),
    rerun: db.prepare(
      `UPDATE partition SET state = ?, rank = NULL, fresh = 1, term = term + 1, secret = '', outcome = NULL,
         attempts = 0, releases = 0, settled_at = NULL, reported_records = NULL WHERE id = ?`,
    ),
  }
}
