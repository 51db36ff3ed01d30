import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { StoreRefused } from '../../handoff/store.ts'
import { type ArchivedStore, BATCH } from '../archive.ts'
import { unreleased } from '../schema-version.ts'
import type { SqlTable } from '../sql-table.ts'
import { insert } from '../statements.ts'
import { arrayQuery, sqlite, writer } from './dialect.ts'
import { unreadable } from './errors.ts'
import { FlushedRows } from './flush.ts'
import { DATA_FILE } from './folder.ts'
import { ownerOf } from './migrate.ts'
import { Entries } from './sqlite-connection.ts'

/** To write, `db` must be a connection to the file of a locked store that no service uses. */
export function archivedStore(db: DatabaseSync): ArchivedStore {
  const flushedRows = new FlushedRows(db)
  return {
    tables: sqlite.archived,
    run: async (text) => db.exec(text),
    count: async ({ path }) => arrayQuery<[number]>(db, `SELECT count(*) FROM ${path}`).get()?.[0] ?? 0,
    async *read(table) {
      yield* inBatches(db, table)
    },
    insert: async (table, rows) => writer(db, insert(table))(rows),
    unflushed: async () => new Entries(db).read().unflushed,
    nextIds: async () => flushedRows.nextIds(),
    setNextIds: async (nextIds) => flushedRows.setNextIds(nextIds),
    begin: async () => db.exec('BEGIN IMMEDIATE'),
  }
}

function* inBatches(db: DatabaseSync, table: SqlTable<object>): Iterable<object[]> {
  const statement = db.prepare(`SELECT ${table.selected()} FROM ${table.name} ORDER BY ${table.order}`)
  statement.setReturnArrays(true)
  let rows: object[] = []
  for (const values of statement.iterate()) {
    rows.push(table.read(values as unknown as unknown[]))
    if (rows.length < BATCH) continue
    yield rows
    rows = []
  }
  if (rows.length > 0) yield rows
}

/** Small enough to show progress and to let the event loop run between two steps. */
const PAGES_AT_A_TIME = 100

export const dataFileIn = (folder: string): string => join(resolve(folder), DATA_FILE)

export function refuseAbsent(path: string): void {
  if (!existsSync(path)) throw new StoreRefused(`${path} does not exist; name the data folder with --data`)
}

/** A snapshot of a store's file, whether a service uses it or not. */
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

/** Copies page by page from one snapshot: otherwise each commit of the service would restart the copy. */
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
    // One file, also for a read-only location. The service switches back to WAL when it opens it.
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
