import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { MAX_PRODUCER_TASKS } from '@baton/protocol'
import type { StoredInstance } from '../../handoff/archived.ts'
import type { ForgetInstances, InstanceRowsQuery, PausedInstance } from '../../handoff/disk.ts'
import type { Heartbeat } from '../../handoff/heartbeats.ts'
import type { InstanceRecord, ProducedTaskDetails } from '../../handoff/views/queries.ts'
import { insert } from '../flush.ts'
import { heartbeatRows, instanceRecord, producedTask, recordHeartbeat } from '../instances.ts'
import { LIMIT } from '../reads.ts'
import { arrayQuery, finder, sqlite, tasks, textOf } from './tables.ts'

/** The rows of instances: written in batches, read one at a time. */
export class InstanceRows {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  record(heartbeats: readonly Heartbeat[], now: number): void {
    for (const row of heartbeatRows(heartbeats, now))
      this.#sql.record.run(...(sqlite.instances.values(row) as SQLInputValue[]), now)
  }

  get(instanceId: string): InstanceRecord | null {
    const row = this.#sql.byName.get(instanceId)
    return row === undefined ? null : { ...instanceRecord(row), tasks: this.#tasks(instanceId) }
  }

  list(query: InstanceRowsQuery): InstanceRecord[] {
    return this.#rows(query).map(instanceRecord)
  }

  #rows(query: InstanceRowsQuery): StoredInstance[] {
    if ('names' in query) return query.names.flatMap((name) => this.#sql.byName.get(name) ?? [])
    const { sort, after, limit } = query
    if (sort === 'name') return this.#sql.list.all(after?.name ?? '', limit)
    return this.#sql.lastSeen.all(after?.value ?? Number.MAX_SAFE_INTEGER, after?.name ?? '', limit)
  }

  paused(): PausedInstance[] {
    return this.#sql.paused.all().map(([instanceId, pausedAt]) => ({ instanceId, pausedAt }))
  }

  /**
   * Finds active instances by the indexes of heartbeats and of leases, because the rows of inactive ones are
   * kept for days and must not be read.
   */
  active(since: number, limit: number): string[] {
    const names = new Set<string>()
    let holder: string | null = ''
    while (names.size < limit) {
      ;[holder] = this.#sql.nextHolder.get(holder) ?? [null]
      if (holder === null) break
      names.add(holder)
    }
    for (const [name] of this.#sql.seenSince.all(since, limit)) names.add(name)
    for (const [name] of this.#sql.lost.all(limit)) names.add(name)
    return [...names].slice(0, limit)
  }

  forget({ unseenSince, endedSince, most, limit }: ForgetInstances): number {
    const [beyond] = this.#sql.beyond.get(most) ?? [0]
    const unseen = this.#sql.unseen.all(Math.max(unseenSince, beyond + 1), limit)
    const ended = this.#sql.ended.all(endedSince, limit)
    const gone = [...new Set([...unseen, ...ended].map(([name]) => name))].slice(0, limit)
    for (const name of gone) {
      this.#sql.forgetProduced.run(name)
      this.#sql.forget.run(name)
    }
    return gone.length
  }

  #tasks(instance: string): ProducedTaskDetails[] {
    return this.#sql.tasks
      .all(instance, MAX_PRODUCER_TASKS)
      .map(([lastCallBackAt, ...row]) => producedTask(tasks.read(row), lastCallBackAt))
  }
}

/** A client that holds a lease or is paused is kept, however long it has been silent. */
const MAY_BE_FORGOTTEN = `paused_at IS NULL AND NOT EXISTS
  (SELECT 1 FROM partition WHERE state = 'leased' AND holder = instance.instance_id)`

function prepare(db: DatabaseSync) {
  return {
    record: db.prepare(textOf(insert(sqlite.instances, recordHeartbeat(sqlite, '?')))),
    byName: finder(db, sqlite.instances, 'WHERE instance_id = ?'),
    list: finder(db, sqlite.instances, `WHERE instance_id > ? ORDER BY instance_id ${LIMIT}`),
    lastSeen: finder(
      db,
      sqlite.instances,
      `WHERE (last_seen_at, instance_id) < (?, ?) ORDER BY last_seen_at DESC, instance_id DESC ${LIMIT}`,
    ),
    paused: arrayQuery<[string, number]>(
      db,
      'SELECT instance_id, paused_at FROM instance WHERE paused_at IS NOT NULL',
    ),
    lost: arrayQuery<[string]>(
      db,
      `SELECT instance_id FROM instance WHERE last_seen_at < expected_at ${LIMIT}`,
    ),
    seenSince: arrayQuery<[string]>(
      db,
      `SELECT instance_id FROM instance INDEXED BY instance_to_forget WHERE last_seen_at >= ? ${LIMIT}`,
    ),
    nextHolder: arrayQuery<[string | null]>(
      db,
      "SELECT min(holder) FROM partition WHERE state = 'leased' AND holder > ?",
    ),
    tasks: arrayQuery<[number, ...unknown[]]>(
      db,
      `SELECT produced_task.at, ${tasks.selected()}
       FROM produced_task CROSS JOIN task ON task.id = produced_task.task
       WHERE produced_task.instance = ? ORDER BY produced_task.at DESC ${LIMIT}`,
    ),
    beyond: arrayQuery<[number]>(
      db,
      `SELECT last_seen_at FROM instance INDEXED BY instance_to_forget WHERE last_seen_at > 0
       ORDER BY last_seen_at DESC LIMIT 1 OFFSET ? + 0`,
    ),
    unseen: arrayQuery<[string]>(
      db,
      `SELECT instance_id FROM instance WHERE last_seen_at < ? AND ${MAY_BE_FORGOTTEN} ${LIMIT}`,
    ),
    ended: arrayQuery<[string]>(
      db,
      `SELECT instance_id FROM instance WHERE draining = 1 AND last_seen_at < ? AND ${MAY_BE_FORGOTTEN} ${LIMIT}`,
    ),
    forgetProduced: db.prepare('DELETE FROM produced_task WHERE instance = ?'),
    forget: db.prepare('DELETE FROM instance WHERE instance_id = ?'),
  }
}
