import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { Disk } from '../../handoff/disk.ts'
import { storeClosed } from '../../handoff/store.ts'
import { allReadsBy } from '../all-reads.ts'
import type { Session } from '../statements.ts'
import { sqlite } from './dialect.ts'
import { asUnavailable } from './errors.ts'
import { DataFolder } from './folder.ts'
import { SqliteConnection } from './sqlite-connection.ts'

const SPACE_CHECK_MILLIS = 1000

/** Where a disk gets its connection from. */
interface Connections {
  connection(): SqliteConnection
  /** Converts an error for the caller. */
  failed(error: unknown): unknown
  hasSpace(): boolean
  close(): void
}

/** The data file while the service runs. It is reopened after a disk failure. */
class OpenFile implements Connections {
  readonly #folder: DataFolder
  /** Of this process: another one that opens the file takes it over. */
  readonly #term = randomUUID()
  #database: DatabaseSync | undefined
  #connection: SqliteConnection | undefined
  #space = { checkedAt: Number.NEGATIVE_INFINITY, enough: true }

  constructor(path: string) {
    this.#folder = new DataFolder(path)
  }

  /** Returns warnings for the operator. Throws StoreRefused if the folder cannot or must not be used. */
  lock(): readonly string[] {
    this.#folder.lock()
    try {
      this.connection().takeOver()
      return this.#folder.closeToOthers()
    } catch (error) {
      this.#abandon()
      this.#folder.unlock()
      throw this.#folder.refusal(error)
    }
  }

  connection(): SqliteConnection {
    if (this.#connection !== undefined && this.#database !== undefined) return this.#connection
    this.#database = this.#folder.open()
    this.#connection = new SqliteConnection(this.#database, this.#term, this.#connection)
    return this.#connection
  }

  /** After a disk failure the connection is closed, because its cached state is unreliable. */
  failed(error: unknown): unknown {
    const unavailable = asUnavailable(error)
    if (unavailable === undefined) return error
    this.#abandon()
    return unavailable
  }

  close(): void {
    this.#abandon()
    this.#folder.unlock()
  }

  /** A system call, so the result is cached for a while as long as there is enough. */
  hasSpace(): boolean {
    const at = performance.now()
    if (at - this.#space.checkedAt >= SPACE_CHECK_MILLIS || !this.#space.enough)
      this.#space = { checkedAt: at, enough: this.#folder.hasSpace() }
    return this.#space.enough
  }

  /** The connection is kept, for the next one to continue from. */
  #abandon(): void {
    try {
      this.#database?.close()
    } catch {
      // The connection was unusable already.
    }
    this.#database = undefined
  }
}

interface SqliteDiskOptions {
  readonly folder: string
  /** Called with warnings for the operator about the data folder. */
  readonly warn?: ((text: string) => void) | undefined
}

/**
 * Resolves when the data folder is locked and its file has the current schema; rejects with StoreRefused if
 * it must not be used.
 *
 * SQLite is synchronous, so a transaction blocks the event loop until it is on disk. Passing batches to a
 * separate thread and back would cost more than the event loop would gain (decision 0006).
 */
export async function openSqliteDisk({ folder, warn }: SqliteDiskOptions): Promise<Disk> {
  const file = new OpenFile(resolve(folder))
  for (const text of file.lock()) warn?.(text)
  return sqliteDisk(file)
}

export function sqliteDisk(file: Connections): Disk {
  let closed = false
  const call = async <Result>(work: (connection: SqliteConnection) => Result): Promise<Result> => {
    if (closed) throw storeClosed()
    try {
      return work(file.connection())
    } catch (error) {
      throw file.failed(error)
    }
  }
  const session: Session = {
    all: (query, ...values) => call(({ selects }) => selects.all(query, values)),
    lists: (asked) => call(({ selects }) => selects.lists(asked)),
    write: (...writes) => call((connection) => connection.write(writes)),
  }
  return {
    ...allReadsBy(session, sqlite),
    open: () => call((connection) => connection.open()),
    append: (entry) => call((connection) => connection.append(entry)),
    flush: (rowChanges, upTo) => call((connection) => connection.flush(rowChanges, upTo)),
    stage: (rows) => call((connection) => connection.stage(rows)),
    unstage: (ids) => call((connection) => connection.unstage(ids)),
    recordInstances: (heartbeats, now) => call((connection) => connection.recordInstances(heartbeats, now)),
    probe: (now) => call((connection) => connection.probe(now)),
    hasSpace() {
      try {
        return file.hasSpace()
      } catch (error) {
        throw file.failed(error)
      }
    },
    async close() {
      if (closed) return
      closed = true
      file.close()
    },
  }
}
