import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { asUnavailable } from '../../src/disk/sqlite/errors.ts'
import { migrate } from '../../src/disk/sqlite/migrate.ts'
import { SqliteConnection } from '../../src/disk/sqlite/sqlite-connection.ts'
import { sqliteDisk } from '../../src/disk/sqlite/sqlite-disk.ts'
import type { Disk } from '../../src/handoff/disk.ts'

/** Prepares each statement once: a simulation connects to its database a thousand times. */
class KeptStatements extends DatabaseSync {
  readonly #statements = new Map<string, StatementSync>()

  /** In memory nothing is synced, so how is not set before each write. */
  override exec(text: string): void {
    if (!text.startsWith('PRAGMA synchronous')) super.exec(text)
  }

  override prepare(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (statement === undefined) {
      statement = super.prepare(text)
      this.#statements.set(text, statement)
    }
    return statement
  }
}

/** A SQLite database in memory that several nodes share, as they share one in PostgreSQL. */
export class MemoryDatabase {
  readonly db: DatabaseSync = new KeptStatements(':memory:')
  #terms = 0

  constructor() {
    migrate(this.db, 'in memory')
  }

  /** The disk of another node. Each time it is opened, it takes over from the one that was opened last. */
  disk(): Disk {
    let connection: SqliteConnection | undefined
    const connect = () => {
      this.#terms += 1
      return new SqliteConnection(this.db, `term ${this.#terms}`)
    }
    const disk = sqliteDisk({
      connection() {
        connection ??= connect()
        return connection
      },
      failed: (error) => asUnavailable(error) ?? error,
      hasSpace: () => true,
      close: () => {},
    })
    return {
      ...disk,
      async open() {
        connection = connect()
        connection.takeOver()
        return disk.open()
      },
    }
  }
}
