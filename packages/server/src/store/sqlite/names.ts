import type { DatabaseSync } from 'node:sqlite'
import type { InstanceRole } from '@baton/protocol'

/** Long names that many rows share, kept once and spoken of by number. */
const CACHED_NAMES = 50_000

export class Names {
  readonly #tableIds = new Map<string, number>()
  readonly #tableNames = new Map<number, string>()
  readonly #instanceIds = new Map<string, number>()
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  computeTable(id: number): string {
    const known = this.#tableNames.get(id)
    if (known !== undefined) return known
    const name = this.#sql.tableName.get(id)?.['name'] as string
    this.#tableNames.set(id, name)
    return name
  }

  computeTableId(name: string): number {
    const known = this.knownComputeTableId(name)
    if (known !== undefined) return known
    this.#sql.insertTable.run(name)
    return this.knownComputeTableId(name) as number
  }

  knownComputeTableId(name: string): number | undefined {
    const cached = this.#tableIds.get(name)
    if (cached !== undefined) return cached
    const id = this.#sql.tableId.get(name)?.['id'] as number | undefined
    if (id !== undefined) this.#tableIds.set(name, id)
    return id
  }

  /** An instance's first sight is written at once, because rows refer to it; later ones are gathered. */
  instance(instanceId: string, role: InstanceRole, now: number): number {
    const cached = this.#instanceIds.get(instanceId)
    if (cached !== undefined) return cached
    this.#sql.insertInstance.run(instanceId, role, now, now)
    const id = this.#sql.instanceId.get(instanceId)?.['id'] as number
    this.#instanceIds.set(instanceId, id)
    return id
  }

  trim(): void {
    if (this.#tableIds.size + this.#tableNames.size + this.#instanceIds.size > CACHED_NAMES) this.forget()
  }

  forget(): void {
    for (const map of [this.#tableIds, this.#tableNames, this.#instanceIds]) map.clear()
  }
}

function prepare(db: DatabaseSync) {
  return {
    tableName: db.prepare('SELECT name FROM compute_table WHERE id = ?'),
    tableId: db.prepare('SELECT id FROM compute_table WHERE name = ?'),
    insertTable: db.prepare('INSERT INTO compute_table (name) VALUES (?)'),
    instanceId: db.prepare('SELECT id FROM instance WHERE instance_id = ?'),
    insertInstance: db.prepare(
      `INSERT INTO instance (instance_id, role, first_seen_at, last_seen_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (instance_id) DO NOTHING`,
    ),
  }
}
