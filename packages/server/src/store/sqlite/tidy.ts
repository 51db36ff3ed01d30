import type { DatabaseSync } from 'node:sqlite'
import { parseLeaseId } from '../../handoff/rules/lease-id.ts'
import { unfinishedStates } from '../../handoff/rules/life-cycle.ts'
import { KEY_GRACE_MILLIS } from '../../handoff/rules/policy.ts'
import type { LaneEntry, TaskEntry } from '../../handoff/rules/task-entry.ts'
import type { TidyOrder, TidyResult } from '../../handoff/store.ts'
import { STEP } from './lanes.ts'
import type { Ledger } from './ledger.ts'
import type { Names } from './names.ts'
import { query } from './query.ts'
import type { TaskSteps } from './task-steps.ts'

/** What can be done later, a little at a time, so that no pull waits for it. */
export class Tidy {
  readonly #ledger: Ledger
  readonly #names: Names
  readonly #steps: TaskSteps
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync, ledger: Ledger, names: Names, steps: TaskSteps) {
    this.#ledger = ledger
    this.#names = names
    this.#steps = steps
    this.#sql = prepare(db)
  }

  /** Each a transaction of its own. */
  duties(order: TidyOrder, now: number): (() => TidyResult)[] {
    return [
      () => this.#steps.advanceAny(),
      () => ({ readied: 0, more: this.#forgetKeys(now) }),
      () => ({ readied: 0, more: this.#forgetInstances(order, now) }),
      () => ({ readied: 0, more: this.#purge(now - order.retentionMillis, now) }),
    ]
  }

  /** A key whose leases were renewed is remembered for as long as they run. */
  #forgetKeys(now: number): boolean {
    const due = this.#sql.dueKeys.all(now, STEP)
    for (const { key, leases } of due) {
      const expiries = (JSON.parse(leases) as string[]).map((id) => {
        const ref = parseLeaseId(id)
        return ref && (this.#sql.leaseExpiry.get(ref.partition, ref.term)?.['due_at'] as number | undefined)
      })
      const last = Math.max(0, ...expiries.filter((expiry) => expiry !== undefined))
      if (last + KEY_GRACE_MILLIS > now) this.#sql.keepKey.run(last + KEY_GRACE_MILLIS, key)
      else this.#sql.forgetKey.run(key)
    }
    return due.length === STEP
  }

  #forgetInstances({ forgetInstancesMillis, forgetEndedNodesMillis }: TidyOrder, now: number): boolean {
    const since = [now - forgetInstancesMillis, now - forgetEndedNodesMillis] as const
    const gone = this.#sql.unseen.all(...since, STEP)
    for (const { id } of gone) {
      this.#sql.forgetProduced.run(id)
      this.#sql.forgetInstance.run(id)
    }
    if (gone.length > 0) this.#names.forget()
    return gone.length === STEP
  }

  /**
   * Removes rows of the task that finished first; its counters stay as its summary. It counts as purged from the first
   * step on: what is left of it is not the whole, and nobody is to take it for that.
   */
  #purge(finishedBefore: number, now: number): boolean {
    const begun = this.#sql.purging.get()
    const row = begun ?? this.#sql.oldestFinished.get(finishedBefore)
    if (row === undefined) return false
    const task = this.#ledger.entries.task(row.id)
    // A call-back has reopened it since the step before.
    if (begun !== undefined && task.purgedAt === null) {
      this.#sql.endPurge.run(task.id)
      return true
    }
    task.purgedAt ??= now
    this.#ledger.touch(task)
    if (this.#purgeLanes(task)) {
      this.#sql.endPurge.run(task.id)
      this.#sql.forgetPace.run(task.id)
    } else this.#sql.beginPurge.run(task.id)
    return true
  }

  /** From the lowest level on, up to a step in all. True when nothing is left. */
  #purgeLanes(task: TaskEntry): boolean {
    let left = STEP
    let level = -1
    while (left > 0) {
      const next = this.#sql.nextLane.get(task.id, level)
      if (next === undefined) return true
      left -= this.#purgeLane(this.#ledger.entries.lane(next.id), left)
      level = next.level
    }
    return false
  }

  #purgeLane(lane: LaneEntry, limit: number): number {
    const rows = this.#sql.rows.all(lane.id, limit)
    for (const { id, record_count } of rows) {
      this.#sql.remove.run(id)
      lane.purged += 1
      lane.purgedRecords += record_count
    }
    if (rows.length > 0) this.#ledger.touch(lane)
    return rows.length
  }
}

function prepare(db: DatabaseSync) {
  return {
    dueKeys: query<{ key: string; leases: string }>(
      db,
      'SELECT key, leases FROM pull_key WHERE forget_at <= ? ORDER BY forget_at LIMIT ?',
    ),
    leaseExpiry: db.prepare(`SELECT due_at FROM partition WHERE id = ? AND term = ? AND state = 'leased'`),
    keepKey: db.prepare('UPDATE pull_key SET forget_at = ? WHERE key = ?'),
    forgetKey: db.prepare('DELETE FROM pull_key WHERE key = ?'),
    // A client that holds a lease, however silent, is not gone.
    unseen: query<{ id: number }>(
      db,
      `SELECT id FROM instance WHERE (last_seen_at < ? OR draining AND last_seen_at < ?) AND NOT EXISTS
         (SELECT 1 FROM partition WHERE state = 'leased' AND holder = instance.id) LIMIT ?`,
    ),
    forgetProduced: db.prepare('DELETE FROM produced_task WHERE instance = ?'),
    forgetInstance: db.prepare('DELETE FROM instance WHERE id = ?'),
    // Leases of a cancelled task end on their own; until then its rows are needed, and others go first.
    oldestFinished: query<{ id: number }>(
      db,
      `SELECT id FROM task WHERE finished_at IS NOT NULL AND purged_at IS NULL AND finished_at < ?
         AND ${unfinishedStates.map((state) => `${state}_partitions`).join(' + ')} = 0
       ORDER BY finished_at LIMIT 1`,
    ),
    purging: query<{ id: number }>(db, 'SELECT task AS id FROM purging LIMIT 1'),
    beginPurge: db.prepare('INSERT INTO purging (task) VALUES (?) ON CONFLICT DO NOTHING'),
    endPurge: db.prepare('DELETE FROM purging WHERE task = ?'),
    nextLane: query<{ id: number; level: number }>(
      db,
      `SELECT id, level FROM lane WHERE task = ? AND level > ? AND purged < done_partitions + cancelled_partitions ORDER BY level LIMIT 1`,
    ),
    rows: query<{ id: number; record_count: number }>(
      db,
      'SELECT id, record_count FROM partition WHERE lane = ? LIMIT ?',
    ),
    remove: db.prepare('DELETE FROM partition WHERE id = ?'),
    forgetPace: db.prepare('DELETE FROM pace WHERE task = ?'),
  }
}
