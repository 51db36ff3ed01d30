import {
  chmodSync,
  closeSync,
  existsSync,
  fchmodSync,
  mkdirSync,
  openSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StoreRefused, StoreUnavailable } from '../../handoff/store.ts'
import { unreleased } from '../schema-version.ts'
import { asRefused, isBusy } from './errors.ts'
import { ANOTHER_FOLDER, migrate, ownerOf } from './migrate.ts'

/** Private to this user: lease ids are secrets, and write access to the data would allow any change. */
const FOLDER_MODE = 0o700
const FILE_MODE = 0o600
const OTHERS = 0o077

/** The mode does not depend on the umask. */
function makePrivateFolder(path: string): void {
  mkdirSync(path, { mode: FOLDER_MODE })
  chmodSync(path, FOLDER_MODE)
}

/**
 * Creates an empty file unless there is one. Its mode does not depend on the umask. SQLite treats it as a new
 * database, and gives the WAL and journal files the same mode.
 */
function makePrivateFile(path: string): void {
  let file: number
  try {
    file = openSync(path, 'wx', FILE_MODE)
  } catch {
    // The file exists, or SQLite will report why it cannot be created.
    return
  }
  fchmodSync(file, FILE_MODE)
  closeSync(file)
}

function hasClosed(path: string): boolean {
  try {
    chmodSync(path, FILE_MODE)
    return true
  } catch {
    return false
  }
}

/** The file mode if other users have access; undefined if they have none, or there is no such file. */
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

/** Call-backs are refused below this, so that accepted work can still be settled. */
const RESERVE_BYTES = 64 * 2 ** 20
const RESERVE_SHARE = 0.02

/** For another program that writes to the data file. Short, because the event loop is blocked. */
const BUSY_MILLIS = 100

/** Ensures that one process uses the folder, that the schema is current, and that there is space. */
export class DataFolder {
  readonly #path: string
  #lock: DatabaseSync | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** An open transaction on a separate file: it ends with the process, and the data stays readable. */
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
          `the data folder ${this.#path} is in use by another Baton process; stop that process, or choose another folder with --data`,
        )
      }
      throw asRefused(error, this.#path, LOCK_FILE)
    }
  }

  unlock(): void {
    this.#lock?.close()
    this.#lock = undefined
  }

  /** The message for the operator when a file could not be opened. */
  refusal(error: unknown): unknown {
    return asRefused(error, this.#path, DATA_FILE)
  }

  /** Opens the data file and migrates it to the current version. */
  open(): DatabaseSync {
    makePrivateFile(join(this.#path, DATA_FILE))
    const db = new DatabaseSync(join(this.#path, DATA_FILE), { timeout: BUSY_MILLIS })
    try {
      this.#refuseForeign(db)
      db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF')
      // A fixed page cache, so that memory use does not grow with the backlog.
      db.exec('PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 67108864')
      migrate(db, this.#path)
      return db
    } catch (error) {
      db.close()
      throw error
    }
  }

  /**
   * Removes the access of other users to the data files, which earlier versions or other programs may have
   * allowed. The folder keeps its mode, since it may have been made for other users, too. Called once the files
   * are known to belong to Baton. Returns warnings for the operator.
   */
  closeToOthers(): string[] {
    // Windows has no such modes.
    if (process.platform === 'win32') return []
    const folder = this.#path
    const warnings: string[] = []
    const folderMode = openMode(folder)
    if (folderMode !== undefined)
      warnings.push(
        `the data folder ${folder} is accessible to other users (mode ${folderMode}): run chmod 700 ${folder}`,
      )
    const closed: string[] = []
    for (const name of FILES) {
      const path = join(folder, name)
      const mode = openMode(path)
      if (mode === undefined) continue
      if (hasClosed(path)) closed.push(`${name} (mode ${mode})`)
      else
        warnings.push(
          `${path} is accessible to other users (mode ${mode}), and this process cannot change that: run chmod 600 ${path}`,
        )
    }
    if (closed.length > 0)
      warnings.push(
        `files in ${folder} were accessible to other users; their permissions were restricted: ${closed.join(', ')}`,
      )
    return warnings
  }

  /** Whether there is space to accept more work. Throws if the folder was removed: its files were deleted. */
  hasSpace(): boolean {
    try {
      const { bavail, blocks, bsize } = statfsSync(this.#path)
      return bavail * bsize >= Math.min(RESERVE_BYTES, blocks * bsize * RESERVE_SHARE)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const detail = `the data folder ${this.#path} no longer exists: ${reason}; nothing of this request was stored`
      throw new StoreUnavailable('store_unavailable', detail, { cause: error })
    }
  }

  /** Runs before anything is written to the file. */
  #refuseForeign(db: DatabaseSync): void {
    const owner = ownerOf(db)
    if (owner === 'ours' || owner === 'new') return
    if (owner === 'unreleased') throw unreleased(`the data folder ${this.#path}`, ANOTHER_FOLDER)
    throw new StoreRefused(
      `${join(this.#path, DATA_FILE)} is a database of another program and was not changed; move it to another place, or ${ANOTHER_FOLDER}`,
    )
  }
}

/** Node's recursive mkdir never returns where a parent accepts no folders, as in /proc. */
function makeFolder(path: string, make: (path: string) => void = mkdirSync): void {
  if (isFolder(path)) return
  const above = dirname(path)
  if (above !== path && !existsSync(above)) makeFolder(above)
  try {
    make(path)
  } catch (error) {
    // Another process may have created it first.
    if (!isFolder(path)) throw error
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
