import type { DatabaseSync } from 'node:sqlite'
import { type InstanceTotals, MAX_PRODUCER_TASKS } from '@baton/protocol'
import type { InstanceRowsQuery, PausedInstance } from '../../handoff/disk.ts'
import type { Heartbeat } from '../../handoff/heartbeats.ts'
import { totalOf } from '../../handoff/rules/task.ts'
import type { InstanceRecord, ProducedTaskDetails, TotalsAdded } from '../../handoff/views/queries.ts'
import { identityColumns, TAKES_A_NODES_NAME, totalColumns } from '../sql-columns.ts'
import { arrayQuery, LIMIT, query, tasks } from './tables.ts'

/** The rows of instances: written in batches, read one at a time. */
export class InstanceRows {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  record(heartbeats: readonly Heartbeat[], now: number): void {
    for (const { instanceId, role, totals, seenMillisAgo, node } of heartbeats) {
      this.#sql.save.run(
        instanceId,
        role,
        now - seenMillisAgo.first,
        now - seenMillisAgo.last,
        node?.version ?? null,
        node?.startedAt ?? null,
        node?.draining ? 1 : 0,
        ...totalFields.map((field) => totals[field]),
        now,
      )
    }
  }

  /** Adds to totals what entries say instances did. When an instance was last seen comes from heartbeats. */
  add(added: Iterable<TotalsAdded>): void {
    for (const { instanceId, role, at, totals, expectedAt } of added)
      this.#sql.add.run(instanceId, role, at, at, expectedAt, ...totalFields.map((field) => totals[field]))
  }

  get(instanceId: string): InstanceRecord | null {
    const row = this.#sql.byName.get(instanceId)
    return row === undefined ? null : { ...readInstance(row), tasks: this.#tasks(instanceId) }
  }

  list(query: InstanceRowsQuery): InstanceRecord[] {
    return this.#rows(query).map(readInstance)
  }

  #rows(query: InstanceRowsQuery): InstanceRow[] {
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

  forget(unseenSince: number, endedSince: number, limit: number): number {
    const unseen = this.#sql.unseen.all(unseenSince, limit)
    const ended = this.#sql.ended.all(endedSince, limit)
    const gone = [...new Set([...unseen, ...ended].map(([name]) => name))].slice(0, limit)
    for (const name of gone) {
      this.#sql.forgetProduced.run(name)
      this.#sql.forget.run(name)
    }
    return gone.length
  }

  #tasks(instance: string): ProducedTaskDetails[] {
    return this.#sql.tasks.all(instance, MAX_PRODUCER_TASKS).map(([lastCallBackAt, ...row]) => {
      const { taskId, state, partitions, records } = tasks.read(row)
      return {
        taskId,
        state,
        lastCallBackAt,
        partitions: { total: totalOf(partitions), done: partitions.done },
        records: { total: totalOf(records), done: records.done },
      }
    })
  }
}

function readInstance(row: InstanceRow): InstanceRecord {
  const { instance_id, role, first_seen_at, last_seen_at, version, started_at, draining } = row
  const totals = totalFields.map((field) => [field, row[totalColumns[field]]])
  return {
    instanceId: instance_id,
    role,
    firstSeenAt: first_seen_at,
    lastSeenAt: last_seen_at,
    totals: Object.fromEntries(totals) as unknown as InstanceTotals,
    expectedAt: row.expected_at,
    pausedAt: row.paused_at,
    node: started_at === null ? null : { version, startedAt: started_at, draining: draining === 1 },
  }
}

const totalFields = Object.keys(totalColumns) as (keyof InstanceTotals)[]

type TotalColumn = (typeof totalColumns)[keyof InstanceTotals]
type InstanceRow = Record<TotalColumn, number> & {
  readonly instance_id: string
  readonly role: InstanceRecord['role']
  readonly first_seen_at: number
  readonly last_seen_at: number
  readonly version: string
  readonly started_at: number | null
  readonly draining: number
  readonly expected_at: number | null
  readonly paused_at: number | null
}

/** The time never goes back, except from the future to now after the clock was set back. */
const LAST_SEEN = 'max(excluded.last_seen_at, min(instance.last_seen_at, ?))'

/** A client that holds a lease or is paused is kept, however long it has been silent. */
const MAY_BE_FORGOTTEN = `paused_at IS NULL AND NOT EXISTS
  (SELECT 1 FROM partition WHERE state = 'leased' AND holder = instance.instance_id)`

function prepare(db: DatabaseSync) {
  const columns = Object.values(totalColumns)
  const addTotals = columns.map((column) => {
    const total = `${column} + excluded.${column}`
    return `${column} = ${column === 'records' ? `min(${total}, ${Number.MAX_SAFE_INTEGER})` : total}`
  })
  return {
    save: db.prepare(
      `INSERT INTO instance (instance_id, role, first_seen_at, last_seen_at, version, started_at, draining,
         ${columns.join(', ')})
       VALUES (?, ?, ?, ?, ?, ?, ?, ${columns.map(() => '?').join(', ')})
       ON CONFLICT (instance_id) DO UPDATE SET
         last_seen_at = iif(${TAKES_A_NODES_NAME}, instance.last_seen_at, ${LAST_SEEN}),
         ${identityColumns.map((column) => `${column} = iif(${TAKES_A_NODES_NAME}, instance.${column}, excluded.${column})`).join(', ')},
         ${addTotals.join(', ')}`,
    ),
    add: db.prepare(
      `INSERT INTO instance (instance_id, role, first_seen_at, last_seen_at, expected_at, ${columns.join(', ')})
       VALUES (?, ?, ?, ?, ?, ${columns.map(() => '?').join(', ')})
       ON CONFLICT (instance_id) DO UPDATE SET ${addTotals.join(', ')},
         expected_at = coalesce(max(expected_at, excluded.expected_at), expected_at, excluded.expected_at)`,
    ),
    byName: query<InstanceRow>(db, 'SELECT * FROM instance WHERE instance_id = ?'),
    list: query<InstanceRow>(
      db,
      `SELECT * FROM instance WHERE instance_id > ? ORDER BY instance_id ${LIMIT}`,
    ),
    lastSeen: query<InstanceRow>(
      db,
      `SELECT * FROM instance WHERE (last_seen_at, instance_id) < (?, ?)
       ORDER BY last_seen_at DESC, instance_id DESC ${LIMIT}`,
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
      `SELECT produced_task.last_call_back_at, ${tasks.columns}
       FROM produced_task CROSS JOIN task ON task.id = produced_task.task
       WHERE produced_task.instance = ? ORDER BY produced_task.last_call_back_at DESC ${LIMIT}`,
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
