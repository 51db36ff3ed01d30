import type { ArchiveSource, PerSection, RowBatch } from '../handoff/archived.ts'
import { StoreRefused } from '../handoff/store.ts'
import type { NextIds } from '../handoff/stored.ts'
import { sections } from '../handoff/table-fields.ts'
import type { SqlTable } from './sql-table.ts'
import type { ArchivedTables } from './sql-tables.ts'

/** The most rows that are read at a time. */
export const BATCH = 1000

export interface ArchivedStore {
  readonly tables: ArchivedTables
  run(text: string): Promise<unknown>
  count(table: SqlTable<object>): Promise<number>
  /** All rows of a table in its order, some at a time. */
  read(table: SqlTable<object>): AsyncIterable<object[]>
  insert(table: SqlTable<object>, rows: readonly object[]): Promise<void>
  unflushed(): Promise<readonly string[]>
  nextIds(): Promise<NextIds>
  setNextIds(nextIds: NextIds): Promise<void>
  /** Begins a transaction that writes, and fails if others use the store. */
  begin(): Promise<void>
}

/** `store` must be in a transaction: then one consistent snapshot is read, even while the service writes. */
export const sourceOf = async (store: ArchivedStore): Promise<ArchiveSource> => ({
  nextIds: await store.nextIds(),
  counts: await countRows(store),
  unflushed: await store.unflushed(),
  async *batches() {
    for (const section of sections) {
      yield { section, rows: [] }
      for await (const rows of store.read(store.tables[section] as SqlTable<object>))
        yield { section, rows } as unknown as RowBatch
    }
  },
})

async function countRows({ tables, count }: ArchivedStore): Promise<PerSection<number>> {
  const counts: Record<string, number> = {}
  for (const section of sections) counts[section] = await count(tables[section] as SqlTable<object>)
  return counts as PerSection<number>
}

/** Imports all rows or nothing. Rejects with StoreRefused if the store already has a task. */
export async function fill(store: ArchivedStore, source: ArchiveSource): Promise<void> {
  const { tables, run } = store
  try {
    await store.begin()
    const { tasks: found } = await countRows(store)
    if (found > 0)
      throw new StoreRefused(
        `the store is not empty: it has ${found} ${found === 1 ? 'task' : 'tasks'}; an import requires an empty store. Nothing was changed`,
      )
    // A service that was started on the store has left its instance row, and nothing else worth keeping.
    for (const section of sections) await run(`DELETE FROM ${tables[section].path}`)
    for await (const { section, rows } of source.batches())
      if (rows.length > 0) await store.insert(tables[section] as SqlTable<object>, rows)
    await store.setNextIds(source.nextIds)
    refuseMissing(source.counts, await countRows(store))
    await run('COMMIT')
  } catch (error) {
    // A failed statement may have ended the transaction.
    await run('ROLLBACK').catch(() => {})
    throw error
  }
}

function refuseMissing(expected: PerSection<number>, found: PerSection<number>): void {
  for (const section of sections)
    if (expected[section] !== found[section])
      throw new StoreRefused(
        `the file has ${expected[section]} ${section}, but the store would have ${found[section]}; nothing was imported`,
      )
}
