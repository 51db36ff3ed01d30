import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { migrate } from '../../packages/server/src/disk/sqlite/migrate.ts'
import { MemoryDatabase } from '../../packages/server/test/support/memory-database.ts'

interface Write {
  readonly text: string
  readonly values: readonly SQLInputValue[]
}

/**
 * A database in memory that can fail over to a standby that lacks the last commits. Those who are connected
 * to it notice nothing.
 */
export class ReplicatedDatabase extends MemoryDatabase {
  readonly #primary: Primary

  constructor() {
    const primary = new Primary()
    super(primary as unknown as DatabaseSync)
    this.#primary = primary
  }

  get commits(): number {
    return this.#primary.commits.length
  }

  /** The standby has the first `commits` commits. */
  failOver(commits: number): void {
    this.#primary.replace(commits)
  }
}

/** The part of a connection to SQLite that disks use. It records what was committed, to replay it. */
class Primary {
  db = new DatabaseSync(':memory:')
  readonly commits: (readonly Write[])[] = []
  #transaction: Write[] = []
  readonly #statements = new Map<string, Statement>()

  get isTransaction(): boolean {
    return this.db.isTransaction
  }

  prepare(text: string): Statement {
    let statement = this.#statements.get(text)
    if (statement === undefined) {
      statement = new Statement(this, text)
      this.#statements.set(text, statement)
    }
    return statement
  }

  /** For what is not replayed: the schema, settings and ROLLBACK. */
  exec(text: string): void {
    this.db.exec(text)
    this.#transaction = []
  }

  ran(text: string, values: readonly SQLInputValue[]): void {
    if (text === 'COMMIT') this.commits.push(this.#transaction)
    if (text === 'COMMIT' || text.startsWith('BEGIN')) this.#transaction = []
    // The buffer of an entry is used again.
    else
      this.#transaction.push({
        text,
        values: values.map((value) => (value instanceof Uint8Array ? Buffer.from(value) : value)),
      })
  }

  replace(commits: number): void {
    this.db.close()
    this.db = new DatabaseSync(':memory:')
    migrate(this.db, 'in memory')
    this.commits.length = commits
    this.db.exec('BEGIN')
    for (const writes of this.commits)
      for (const { text, values } of writes)
        this.prepare(text)
          .real()
          .run(...values)
    this.db.exec('COMMIT')
  }
}

class Statement {
  readonly #primary: Primary
  readonly #text: string
  #of: DatabaseSync | undefined
  #statement: StatementSync | undefined
  #returnsArrays = false

  constructor(primary: Primary, text: string) {
    this.#primary = primary
    this.#text = text
  }

  real(): StatementSync {
    const { db } = this.#primary
    if (this.#statement === undefined || this.#of !== db) {
      this.#of = db
      this.#statement = db.prepare(this.#text)
      this.#statement.setReturnArrays(this.#returnsArrays)
    }
    return this.#statement
  }

  setReturnArrays(enabled: boolean): void {
    this.#returnsArrays = enabled
    this.real().setReturnArrays(enabled)
  }

  get(...values: SQLInputValue[]): unknown {
    return this.real().get(...values)
  }

  all(...values: SQLInputValue[]): unknown[] {
    return this.real().all(...values)
  }

  run(...values: SQLInputValue[]): unknown {
    const result = this.real().run(...values)
    this.#primary.ran(this.#text, values)
    return result
  }
}
