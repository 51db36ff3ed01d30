import { check } from '../../src/archive/check.ts'
import { verify } from '../../src/archive/store-tools.ts'
import type { Location } from '../../src/archive/stores.ts'
import type { SqlTable } from '../../src/disk/sql-table.ts'
import { arrayQuery, sqlite } from '../../src/disk/sqlite/dialect.ts'
import { FlushedRows } from '../../src/disk/sqlite/flush.ts'
import { Entries } from '../../src/disk/sqlite/sqlite-connection.ts'
import { perSection, type RowBatch } from '../../src/handoff/archived.ts'
import { sections } from '../../src/handoff/table-fields.ts'
import type { MemoryDatabase } from './memory-database.ts'

/** Contradictions in a store, which may be in use: counters against rows, and whatever else `baton verify` finds. */
export const recount = async (location: Location): Promise<readonly string[]> =>
  (await verify(location)).findings

/** The same of a database in memory. All is read at once, so that nothing is written meanwhile. */
export async function recountIn({ db }: MemoryDatabase): Promise<readonly string[]> {
  const rows = perSection((section) => {
    const table = sqlite.archived[section] as SqlTable<object>
    const query = `SELECT ${table.selected()} FROM ${table.path} ORDER BY ${table.order}`
    return arrayQuery<unknown[]>(db, query).all().map(table.read)
  })
  const source = {
    nextIds: new FlushedRows(db).nextIds(),
    counts: perSection((section) => rows[section].length),
    unflushed: new Entries(db).read().unflushed,
    async *batches() {
      for (const section of sections) yield { section, rows: rows[section] } as unknown as RowBatch
    },
  }
  return (await check(source)).findings
}
