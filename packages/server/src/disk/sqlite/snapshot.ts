import { existsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { StoreRefused } from '../../handoff/store.ts'
import { asRefused } from './failures.ts'
import { DATA_FILE, isOurs, namesIn } from './folder.ts'
import { SCHEMA_VERSION, versionOf } from './migrate.ts'

/** Small enough to show progress and to let the event loop run between two steps. */
const PAGES_AT_A_TIME = 100

export const dataFileIn = (folder: string): string => join(resolve(folder), DATA_FILE)

/**
 * Opens a read-only snapshot of a store's file, whether a service uses it or not. Later commits are not
 * visible in it.
 */
export async function withSnapshot<Result>(
  path: string,
  work: (db: DatabaseSync) => Promise<Result>,
): Promise<Result> {
  if (!existsSync(path)) throw new StoreRefused(`${path} is not there; --data says which folder to look in`)
  try {
    const db = new DatabaseSync(path, { readOnly: true })
    try {
      db.exec('PRAGMA cache_size = -65536; PRAGMA mmap_size = 0; BEGIN')
      // The first read starts the snapshot.
      if (!isOurs(namesIn(db))) throw new StoreRefused(`${path} is a database of some other program`)
      return await work(db)
    } finally {
      db.close()
    }
  } catch (error) {
    throw asRefused(error, dirname(path), basename(path))
  }
}

/** The tools only read the schema version that this program writes. */
export function refuseOtherVersion(db: DatabaseSync, path: string): void {
  const version = versionOf(db)
  if (version === SCHEMA_VERSION) return
  const remedy =
    version > SCHEMA_VERSION
      ? `use a Baton that knows version ${version}`
      : 'start this Baton on it once, which brings it up to date'
  throw new StoreRefused(`${path} has schema version ${version}, not ${SCHEMA_VERSION}; ${remedy}`)
}

/**
 * Copies page by page from one snapshot, while the service continues. Without the open transaction each of
 * its commits would restart the copy.
 */
export async function copySnapshot(
  from: string,
  to: string,
  progress?: (done: number, total: number) => void,
): Promise<void> {
  await withSnapshot(from, (db) =>
    backup(db, to, {
      rate: PAGES_AT_A_TIME,
      progress: ({ totalPages, remainingPages }) => progress?.(totalPages - remainingPages, totalPages),
    }),
  )
  const copy = new DatabaseSync(to)
  try {
    // Leave a single file that can be read from a read-only location. The service switches back to WAL when
    // it opens it.
    copy.exec('PRAGMA journal_mode = DELETE')
    const damage = damageIn(copy)
    if (damage.length > 0)
      throw new StoreRefused(`the copy is damaged, and so is probably ${from}: ${damage[0]}`)
  } finally {
    copy.close()
  }
}

/** Checks the structure of the file, and indexes against rows. */
export function damageIn(db: DatabaseSync): string[] {
  const found = db.prepare('PRAGMA integrity_check(20)').all()
  return found.map(({ integrity_check: text }) => String(text)).filter((text) => text !== 'ok')
}
