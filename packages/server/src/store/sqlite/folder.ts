import { mkdirSync, type StatsFs, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StoreRefused, StoreUnavailable } from '../../handoff/store.ts'
import { migrations } from './migrations/index.ts'

/** Call-backs stop below this, so that what was accepted can still be settled. */
const RESERVE_BYTES = 64 * 2 ** 20
const RESERVE_SHARE = 0.02

/** For a foreign program that writes into the data file. The event loop stands still meanwhile, so not for long. */
const BUSY_MILLIS = 100

/** The data folder: one process at a time, one schema version, enough room. */
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
      mkdirSync(this.#path, { recursive: true })
      this.#lock = new DatabaseSync(join(this.#path, 'baton.lock'), { timeout: 0 })
      this.#lock.exec('BEGIN EXCLUSIVE')
    } catch (error) {
      this.#lock?.close()
      this.#lock = undefined
      if (primaryCode(error) === SQLITE_BUSY) {
        throw new StoreRefused(
          `the data folder ${this.#path} is in use by another Baton; stop it, or give this one a folder of its own with --data`,
        )
      }
      const reason = error instanceof Error ? error.message : String(error)
      throw new StoreRefused(`the data folder ${this.#path} cannot be used: ${reason}`)
    }
  }

  unlock(): void {
    this.#lock?.close()
    this.#lock = undefined
  }

  /** Opens the data file and brings it to the version that this program speaks. */
  open(): DatabaseSync {
    const db = new DatabaseSync(join(this.#path, 'baton.db'), { timeout: BUSY_MILLIS })
    try {
      db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON')
      // A fixed page cache: memory does not follow the backlog.
      db.exec('PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 67108864')
      this.#migrate(db)
      return db
    } catch (error) {
      db.close()
      throw error
    }
  }

  /** Whether there is room to accept more work. */
  hasRoom(): boolean {
    const { bavail, blocks, bsize } = this.#volume()
    return bavail * bsize >= Math.min(RESERVE_BYTES, blocks * bsize * RESERVE_SHARE)
  }

  /** A folder that was taken away must not go on accepting work into files that nobody will find again. */
  #volume(): StatsFs {
    try {
      return statfsSync(this.#path)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const detail = `the data folder ${this.#path} is no longer there: ${reason}; nothing of this request was stored`
      throw new StoreUnavailable('store_unavailable', detail, { cause: error })
    }
  }

  #migrate(db: DatabaseSync): void {
    const version = db.prepare('PRAGMA user_version').get()?.['user_version'] as number
    if (version > migrations.length) {
      throw new StoreRefused(
        `the data folder ${this.#path} has schema version ${version}, and this program knows versions up to ${migrations.length}; start a Baton that knows version ${version}`,
      )
    }
    for (const [done, sql] of migrations.entries()) {
      if (done < version) continue
      db.exec(`BEGIN IMMEDIATE; ${sql}; PRAGMA user_version = ${done + 1}; COMMIT`)
    }
  }
}

const SQLITE_BUSY = 5
const SQLITE_FULL = 13

/** What the operating system or the disk did, in contrast to what a request or a defect did. */
const UNAVAILABLE = new Map([
  [SQLITE_BUSY, 'another process holds the data file'],
  [6, 'the data file is locked'],
  [7, 'memory ran out'],
  [8, 'the data folder is read-only'],
  [10, 'reading or writing the data file failed'],
  [11, 'the data file is damaged'],
  [SQLITE_FULL, 'the disk under the data folder is full'],
  [14, 'the data file cannot be opened'],
  [15, 'another process holds the data file'],
  [26, 'the data file is not a database'],
])

function primaryCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code & 0xff : undefined
}

/** Undefined for an error that is not the disk's fault. */
export function asUnavailable(error: unknown): StoreUnavailable | undefined {
  if (error instanceof StoreUnavailable) return error
  const code = primaryCode(error)
  const reason = code === undefined ? undefined : UNAVAILABLE.get(code)
  if (reason === undefined) return undefined
  const remedy = 'nothing of this request was stored; it can be sent again once that is mended'
  return new StoreUnavailable(
    code === SQLITE_FULL ? 'store_full' : 'store_unavailable',
    `${reason}; ${remedy}`,
    {
      cause: error,
    },
  )
}
