import type { DatabaseSync } from 'node:sqlite'
import { MAX_PRODUCER_TASKS } from '@baton/protocol'
import {
  type InstancePage,
  type InstanceQuery,
  type InstanceRecord,
  type ProducedTaskRecord,
  producedTask,
} from '../../handoff/shown/instance-record.ts'
import type { Sighting } from '../../handoff/sightings.ts'
import { readTask, taskColumns } from './entries.ts'

/** The record of who takes part: written in batches, read one at a time. */
export class InstanceRows {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  record(sightings: readonly Sighting[], now: number): void {
    for (const { instanceId, role, totals, seenMillisAgo, node } of sightings) {
      this.#sql.save.run(
        instanceId,
        role,
        now - seenMillisAgo.first,
        now - seenMillisAgo.last,
        node?.version ?? null,
        node?.startedAt ?? null,
        node?.draining ? 1 : 0,
        totals.pulls,
        totals.partitions,
        totals.records,
        totals.done,
        totals.failed,
        totals.released,
        totals.callBacks,
        totals.calledBack,
        now,
      )
    }
  }

  get(instanceId: string, now: number): InstanceRecord | null {
    const row = this.#sql.byName.get(instanceId)
    return row === undefined ? null : this.#read(row, now)
  }

  /** One more than asked for tells whether there is a next page. */
  list({ after, limit }: InstanceQuery, now: number): InstancePage {
    const rows = this.#sql.list.all(after ?? '', limit + 1)
    const instances = rows.slice(0, limit).map((row) => this.#read(row, now))
    const last = rows.length > limit ? instances.at(-1) : undefined
    return { instances, next: last?.instanceId ?? null }
  }

  #read(row: Record<string, unknown>, now: number): InstanceRecord {
    const id = row['id'] as number
    return {
      instanceId: row['instance_id'] as string,
      role: row['role'] as InstanceRecord['role'],
      firstSeenAt: row['first_seen_at'] as number,
      lastSeenAt: row['last_seen_at'] as number,
      totals: {
        pulls: row['pulls'] as number,
        partitions: row['partitions'] as number,
        records: row['records'] as number,
        done: row['done'] as number,
        failed: row['failed'] as number,
        released: row['released'] as number,
        callBacks: row['call_backs'] as number,
        calledBack: row['called_back'] as number,
      },
      leases: this.#sql.leases.get(now, id)?.['leases'] as number,
      node:
        row['started_at'] === null
          ? null
          : {
              version: row['version'] as string,
              startedAt: row['started_at'] as number,
              draining: row['draining'] === 1,
            },
      now,
      tasks: this.#tasks(id),
    }
  }

  #tasks(instance: number): ProducedTaskRecord[] {
    const rows = this.#sql.tasks.all(instance, MAX_PRODUCER_TASKS)
    return rows.map((row) => producedTask(readTask(row), row['produced_at'] as number))
  }
}

const identity = ['role', 'version', 'started_at', 'draining']
/** In SQL: a client says that it is what is known as a node. What it does counts; the node stays what it is. */
const TAKES_A_NODES_NAME = 'excluded.started_at IS NULL AND instance.started_at IS NOT NULL'

/** Never earlier than it was; but one that was seen in the future, before the clock was set back, was not. */
const LAST_SEEN = 'max(excluded.last_seen_at, min(instance.last_seen_at, ?))'

function prepare(db: DatabaseSync) {
  return {
    save: db.prepare(
      `INSERT INTO instance (instance_id, role, first_seen_at, last_seen_at, version, started_at, draining,
         pulls, partitions, records, done, failed, released, call_backs, called_back)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (instance_id) DO UPDATE SET
         last_seen_at = iif(${TAKES_A_NODES_NAME}, instance.last_seen_at, ${LAST_SEEN}),
         ${identity.map((column) => `${column} = iif(${TAKES_A_NODES_NAME}, instance.${column}, excluded.${column})`).join(', ')},
         pulls = pulls + excluded.pulls, partitions = partitions + excluded.partitions,
         records = min(records + excluded.records, ${Number.MAX_SAFE_INTEGER}),
         done = done + excluded.done, failed = failed + excluded.failed,
         released = released + excluded.released, call_backs = call_backs + excluded.call_backs,
         called_back = called_back + excluded.called_back`,
    ),
    byName: db.prepare('SELECT * FROM instance WHERE instance_id = ?'),
    list: db.prepare('SELECT * FROM instance WHERE instance_id > ? ORDER BY instance_id LIMIT ?'),
    // Reads the index of running leases, whose size is the number of leases, and the rows of those of this holder.
    leases: db.prepare(
      `SELECT count(*) AS leases FROM partition INDEXED BY partition_leased
       WHERE state = 'leased' AND due_at > ? AND holder = ?
         AND NOT (SELECT task.cancelled FROM lane JOIN task ON task.id = lane.task WHERE lane.id = partition.lane)`,
    ),
    tasks: db.prepare(
      `SELECT ${taskColumns}, produced_task.last_call_back_at AS produced_at
       FROM produced_task JOIN task ON task.id = produced_task.task
       WHERE produced_task.instance = ? ORDER BY produced_task.last_call_back_at DESC LIMIT ?`,
    ),
  }
}
