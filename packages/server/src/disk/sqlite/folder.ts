import {
  chmodSync,
  closeSync,
  existsSync,
  fchmodSync,
  mkdirSync,
  openSync,
  type StatsFs,
  statfsSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StoreRefused, StoreUnavailable } from '../../handoff/store.ts'
import { asRefused, isBusy } from './failures.ts'
import { migrateFrom6 } from './migrate-from-6.ts'
import { additionsTo7 } from './migrate-from-7.ts'
import { SCHEMA_VERSION, schema } from './schema.ts'

interface Step {
  /** The version that it leads to. */
  readonly to: number
  run(db: DatabaseSync): void
}

/** What brings a file to a later version, by the version that it has. What makes all tables makes those of today. */
const steps: ReadonlyMap<number, Step> = new Map([
  [6, { to: SCHEMA_VERSION, run: migrateFrom6 }],
  [7, { to: 8, run: (db) => db.exec(additionsTo7.join('\n')) }],
])

/** Brings a file to the version that this program speaks, each step in a transaction of its own. A new one starts with it. */
export function migrate(db: DatabaseSync, path: string): void {
  const version = versionOf(db)
  if (version > SCHEMA_VERSION)
    throw new StoreRefused(
      `the data folder ${path} has schema version ${version}, and this program knows versions up to ${SCHEMA_VERSION}; start a Baton that knows version ${version}`,
    )
  if (version === 0) inTransaction(db, () => db.exec(schema), SCHEMA_VERSION)
  for (let at = versionOf(db); at < SCHEMA_VERSION; at = versionOf(db)) {
    const step = steps.get(at)
    if (step === undefined)
      throw new StoreRefused(
        `the data folder ${path} has schema version ${at}, from before the first release, which this program cannot read; choose another folder with --data`,
      )
    inTransaction(db, step.run, step.to)
  }
}

function inTransaction(db: DatabaseSync, step: (db: DatabaseSync) => void, to: number): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    step(db)
    db.exec(`PRAGMA user_version = ${to}; COMMIT`)
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

export function versionOf(db: DatabaseSync): number {
  return db.prepare('PRAGMA user_version').get()?.['user_version'] as number
}

/** For this user alone: lease ids are secrets, and whoever writes to the data could change everything. */
const FOLDER_MODE = 0o700
const FILE_MODE = 0o600
const OTHERS = 0o077

/** Whatever the umask. */
function makePrivateFolder(path: string): void {
  mkdirSync(path, { mode: FOLDER_MODE })
  chmodSync(path, FOLDER_MODE)
}

/**
 * Makes an empty file, whatever the umask, unless there is one. SQLite takes it for a new database, and gives the files
 * beside it the same mode.
 */
function makePrivateFile(path: string): void {
  let file: number
  try {
    file = openSync(path, 'wx', FILE_MODE)
  } catch {
    // It is there, or SQLite says why it cannot be made.
    return
  }
  fchmodSync(file, FILE_MODE)
  closeSync(file)
}

/**
 * Takes the files from others that earlier versions or other hands left open to them. The folder is left as it is: it
 * may have been made for others, too. Returns what to tell the operator.
 */
function closeToOthers(folder: string, names: readonly string[]): string[] {
  // There is no such thing as these modes.
  if (process.platform === 'win32') return []
  const warnings: string[] = []
  const folderMode = openMode(folder)
  if (folderMode !== undefined)
    warnings.push(
      `the data folder ${folder} is open to other users (mode ${folderMode}): chmod 700 ${folder}`,
    )
  const closed: string[] = []
  for (const name of names) {
    const path = join(folder, name)
    const mode = openMode(path)
    if (mode === undefined) continue
    if (hasClosed(path)) closed.push(`${name} (mode ${mode})`)
    else
      warnings.push(`${path} is open to other users (mode ${mode}) and not ours to close: chmod 600 ${path}`)
  }
  if (closed.length > 0)
    warnings.push(`files in ${folder} were open to other users and no longer are: ${closed.join(', ')}`)
  return warnings
}

function hasClosed(path: string): boolean {
  try {
    chmodSync(path, FILE_MODE)
    return true
  } catch {
    return false
  }
}

/** The mode of what others may use; undefined when they may not, or nothing is there. */
function openMode(path: string): string | undefined {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
  return (mode & OTHERS) === 0 ? undefined : (mode & 0o777).toString(8)
}

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
