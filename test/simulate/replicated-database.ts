import { MemoryDatabase } from '../../packages/server/test/support/memory-database.ts'

type Schema = 'main' | 'standby'

/**
 * A database in memory that can fail over to a standby that lacks the last commits. Those who are connected
 * to it notice nothing.
 */
export class ReplicatedDatabase extends MemoryDatabase {
  /** The tables, and their columns without those that are derived. */
  #tables: readonly (readonly [name: string, columns: string])[] = []
  #changesThen = 0

  /** From now on, the standby gets no more commits. */
  stopReplication(): void {
    if (this.#tables.length === 0) this.#addStandby()
    this.#copy('main', 'standby')
    this.#changesThen = this.#changes
  }

  /** The standby takes over, as it was when replication stopped. False if it lacks nothing. */
  failOver(): boolean {
    if (this.#changes === this.#changesThen) return false
    this.#copy('standby', 'main')
    return true
  }

  #addStandby(): void {
    const columns = this.db.prepare(
      `SELECT tables.name, group_concat(columns.name) FROM sqlite_schema AS tables
         JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' GROUP BY tables.name`,
    )
    columns.setReturnArrays(true)
    this.#tables = columns.all() as unknown as [string, string][]
    this.db.exec("ATTACH ':memory:' AS standby")
    for (const [name, names] of this.#tables) this.db.exec(`CREATE TABLE standby.${name} (${names})`)
  }

  #copy(from: Schema, to: Schema): void {
    this.db.exec('BEGIN')
    for (const [name, columns] of this.#tables)
      this.db.exec(
        `DELETE FROM ${to}.${name}; INSERT INTO ${to}.${name} (${columns}) SELECT ${columns} FROM ${from}.${name}`,
      )
    this.db.exec('COMMIT')
  }

  get #changes(): number {
    return Number(this.db.prepare('SELECT total_changes() AS changes').get()?.['changes'])
  }
}
