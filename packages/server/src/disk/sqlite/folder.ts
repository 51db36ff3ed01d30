import { existsSync, mkdirSync, type StatsFs, statfsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StoreRefused, StoreUnavailable } from '../../handoff/store.ts'
import { asRefused, isBusy } from './failures.ts'
import { closeToOthers, makePrivateFile, makePrivateFolder } from './file-modes.ts'
import { migrate, versionOf } from './migrations.ts'

export const DATA_FILE = 'baton.db'
const LOCK_FILE = 'baton.lock'
const FILES = [
  DATA_FILE,
  `${DATA_FILE}-wal`,
  `${DATA_FILE}-shm`,
  `${DATA_FILE}-journal`,
  LOCK_FILE,
  `${LOCK_FILE}-journal`,
]

/** Among the tables of every version; together no other program's. */
const OUR_TABLES = ['task', 'lane', 'partition', 'pull_key']

/** Call-backs stop below this, so that what was accepted can still be settled. */
const RESERVE_BYTES = 64 * 2 ** 20
const RESERVE_SHARE = 0.02

/** For a foreign program that writes into the data file. The event loop stands still meanwhile, so not for long. */
const BUSY_MILLIS = 100

/** The data folder: one process at a time, one schema version, enough space. */
export class DataFolder {
  readonly #path: string
  #lock: DatabaseSync | undefined

  constructor(path: string) {
    this.#path = path
  }

  /**
   * Held by an open transaction on a file of its own: the operating system lets go of it when the
   * process ends, however it ends, and the data file stays readable for a backup.
   */
  lock(): void {
    try {
      makeFolder(this.#path, makePrivateFolder)
      makePrivateFile(join(this.#path, LOCK_FILE))
      this.#lock = new DatabaseSync(join(this.#path, LOCK_FILE), { timeout: 0 })
      this.#lock.exec('BEGIN EXCLUSIVE')
    } catch (error) {
      this.#lock?.close()
      this.#lock = undefined
      if (isBusy(error)) {
        throw new StoreRefused(
          `the data folder ${this.#path} is in use by another Baton; stop it, or give this one a folder of its own with --data`,
        )
      }
      throw asRefused(error, this.#path, LOCK_FILE)
    }
  }

  unlock(): void {
    this.#lock?.close()
    this.#lock = undefined
  }

  /** What to tell whoever starts the service about a file that could not be opened. */
  refusal(error: unknown): unknown {
    return asRefused(error, this.#path, DATA_FILE)
  }

  /** Opens the data file and brings it to the version that this program speaks. */
  open(): DatabaseSync {
    makePrivateFile(join(this.#path, DATA_FILE))
    const db = new DatabaseSync(join(this.#path, DATA_FILE), { timeout: BUSY_MILLIS })
    try {
      this.#refuseForeign(db)
      db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF')
      // A fixed page cache: memory does not follow the backlog.
      db.exec('PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 67108864')
      migrate(db, this.#path)
      return db
    } catch (error) {
      db.close()
      throw error
    }
  }

  /** Once the files are known to be ours. Returns what to tell the operator. */
  closeToOthers(): string[] {
    return closeToOthers(this.#path, FILES)
  }

  /** Whether there is space to accept more work. */
  hasSpace(): boolean {
    const { bavail, blocks, bsize } = this.#volume()
    return bavail * bsize >= Math.min(RESERVE_BYTES, blocks * bsize * RESERVE_SHARE)
  }

  /** A folder that was taken away must not go on accepting work into files that are found by no one. */
  #volume(): StatsFs {
    try {
      return statfsSync(this.#path)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const detail = `the data folder ${this.#path} is no longer there: ${reason}; nothing of this request was stored`
      throw new StoreUnavailable('store_unavailable', detail, { cause: error })
    }
  }

  /** Before the first word is written to it. */
  #refuseForeign(db: DatabaseSync): void {
    const names = namesIn(db)
    const isNew = names.size === 0 && versionOf(db) === 0
    if (isNew || isOurs(names)) return
    throw new StoreRefused(
      `${join(this.#path, DATA_FILE)} is a database of some other program, not one of Baton's, and was not touched; move it away, or choose another folder with --data`,
    )
  }
}

export function namesIn(db: DatabaseSync): ReadonlySet<unknown> {
  const rows = db.prepare('SELECT name FROM sqlite_schema').all()
  return new Set(rows.map(({ name }) => name))
}

export function isOurs(names: ReadonlySet<unknown>): boolean {
  return OUR_TABLES.every((table) => names.has(table))
}

/** With those above it. Node's own way to do that never ends below a folder that takes no others, as /proc. */
function makeFolder(path: string, make: (path: string) => void = mkdirSync): void {
  if (isFolder(path)) return
  const above = dirname(path)
  if (above !== path && !existsSync(above)) makeFolder(above)
  try {
    make(path)
  } catch (error) {
    // Somebody else may have been faster.
    if (!isFolder(path)) throw error
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
