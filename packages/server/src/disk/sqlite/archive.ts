import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import {
  type ArchiveSource,
  type ArchiveTarget,
  notEmpty,
  type PerSection,
  perSection,
  type RowBatch,
  refuseMissing,
  type Section,
  sections,
} from '../../handoff/archived.ts'
import { StoreRefused } from '../../handoff/store.ts'
import type { NextIds } from '../../handoff/stored.ts'
import { unreleased } from '../schema-version.ts'
import { insert } from '../statements.ts'
import type { Table } from '../table.ts'
import { ChangedRows } from './changed-rows.ts'
import { unreadable } from './failures.ts'
import { DATA_FILE } from './folder.ts'
import { ownerOf } from './migrate.ts'
import { Entries } from './sqlite-connection.ts'
import { archived, arrayQuery, writer } from './tables.ts'

const BATCH = 1000

/** `db` must be in a transaction: then one consistent snapshot is read, even while the service writes. */
export function sqliteSource(db: DatabaseSync): ArchiveSource {
  return {
    nextIds: new ChangedRows(db).nextIds(),
    counts: countRows(db),
    unflushed: new Entries(db).read().unflushed,
    async *batches() {
      for (const section of sections) yield* batchesOf(db, section)
    },
  }
}

function* batchesOf(db: DatabaseSync, section: Section): Iterable<RowBatch> {
  const table = archived[section] as Table<object>
  const text = `SELECT ${table.selected()} FROM ${table.name} ORDER BY ${table.order}`
  const statement = db.prepare(text)
  statement.setReturnArrays(true)
  let rows: object[] = []
  for (const values of statement.iterate()) {
    rows.push(table.read(values as unknown as unknown[]))
    if (rows.length < BATCH) continue
    yield { section, rows } as unknown as RowBatch
    rows = []
  }
  if (rows.length > 0) yield { section, rows } as unknown as RowBatch
}

function countRows(db: DatabaseSync): PerSection<number> {
  return perSection((section) => {
    const [count] = arrayQuery<[number]>(db, `SELECT count(*) FROM ${archived[section].name}`).get() ?? [0]
    return count
  })
}

/** `db` must be a connection to the file of a locked store that no service uses. */
export function sqliteTarget(db: DatabaseSync): ArchiveTarget {
  return {
    async fill(batches, nextIds, counts) {
      db.exec('BEGIN IMMEDIATE')
      try {
        makeEmpty(db)
        await insertAll(db, batches, nextIds)
        refuseMissing(counts, countRows(db))
        db.exec('COMMIT')
      } catch (error) {
        if (db.isTransaction) db.exec('ROLLBACK')
        throw error
      }
    },
  }
}

/**
 * A service that was started on the store has left its instance row there, and nothing else worth keeping.
 */
function makeEmpty(db: DatabaseSync): void {
  const { tasks: found } = countRows(db)
  if (found > 0) throw notEmpty(found)
  for (const section of sections) db.exec(`DELETE FROM ${archived[section].name}`)
}

async function insertAll(
  db: DatabaseSync,
  batches: AsyncIterable<RowBatch>,
  nextIds: NextIds,
): Promise<void> {
  const write = perSection((section) => writer(db, insert(archived[section] as Table<object>)))
  for await (const { section, rows } of batches) write[section](rows)
  new ChangedRows(db).setNextIds(nextIds)
}

/** Small enough to show progress and to let the event loop run between two steps. */
const PAGES_AT_A_TIME = 100

export const dataFileIn = (folder: string): string => join(resolve(folder), DATA_FILE)

export function refuseAbsent(path: string): void {
  if (!existsSync(path)) throw new StoreRefused(`${path} does not exist; name the data folder with --data`)
}

/**
 * Opens a read-only snapshot of a store's file, whether a service uses it or not. Later commits are not
 * visible in it.
 */
export async function withSnapshot<Result>(
  path: string,
  work: (db: DatabaseSync) => Promise<Result>,
): Promise<Result> {
  refuseAbsent(path)
  try {
    const db = new DatabaseSync(path, { readOnly: true })
    try {
      db.exec('PRAGMA cache_size = -65536; PRAGMA mmap_size = 0; BEGIN')
      // The first read starts the snapshot.
      const owner = ownerOf(db)
      if (owner === 'unreleased') throw unreleased(path, 'use the version that wrote it')
      if (owner !== 'ours') throw new StoreRefused(`${path} is a database of another program`)
      return await work(db)
    } finally {
      db.close()
    }
  } catch (error) {
    throw unreadable(error, path)
  }
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
      throw new StoreRefused(`the copy is damaged, and ${from} probably is too: ${damage[0]}`)
  } finally {
    copy.close()
  }
}

/** Checks the structure of the file, and indexes against rows. */
export function damageIn(db: DatabaseSync): string[] {
  const found = db.prepare('PRAGMA integrity_check(20)').all()
  return found.map(({ integrity_check: text }) => String(text)).filter((text) => text !== 'ok')
}
