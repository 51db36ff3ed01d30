import type { Kind } from './fields.ts'
import { StoreRefused } from './store.ts'
import type { NextIds } from './stored.ts'
import { isTallied, type Section, type StoredRows, sections, storedFields } from './table-fields.ts'

// The content of a store, independent of its kind: what an export writes, an import reads and a check verifies.

export type PerSection<Value> = Readonly<Record<Section, Value>>

/** Fields that do not fit into a JavaScript number. They are written as text. */
export const bigFields = (section: Section): ReadonlySet<string> =>
  new Set(
    Object.entries<Kind>(storedFields[section]).flatMap(([field, kind]) => (kind === 'tag' ? [field] : [])),
  )

export const perSection = <Value>(value: (section: Section) => Value): PerSection<Value> =>
  Object.fromEntries(sections.map((section) => [section, value(section)])) as PerSection<Value>

export const fieldNames: PerSection<readonly string[]> = perSection((section) => [
  ...Object.keys(storedFields[section]),
  ...(isTallied(section) ? ['partitions', 'records'] : []),
])

/** Some rows of one section. */
export type RowBatch = {
  [Name in Section]: { readonly section: Name; readonly rows: readonly StoredRows[Name][] }
}[Section]

/** A snapshot of a store, to be read once. */
export interface ArchiveSource {
  readonly nextIds: NextIds
  readonly counts: PerSection<number>
  batches(): AsyncIterable<RowBatch>
  /** Bodies of entries that are durable but not flushed. */
  readonly unflushed: readonly string[]
}

/** A store without other users. */
export interface ArchiveTarget {
  /** Imports `counts` rows or nothing. Rejects with StoreRefused if the store already has a task. */
  fill(batches: AsyncIterable<RowBatch>, nextIds: NextIds, counts: PerSection<number>): Promise<void>
}

export const totalRows = (counts: PerSection<number>): number =>
  sections.reduce((sum, section) => sum + counts[section], 0)

export type Progress = (done: number, total: number) => void

export const notEmpty = (found: number): StoreRefused =>
  new StoreRefused(
    `the store is not empty: it has ${found} ${found === 1 ? 'task' : 'tasks'}; an import requires an empty store. Nothing was changed`,
  )

export function refuseMissing(expected: PerSection<number>, found: PerSection<number>): void {
  for (const section of sections)
    if (expected[section] !== found[section])
      throw new StoreRefused(
        `the file has ${expected[section]} ${section}, but the store would have ${found[section]}; nothing was imported`,
      )
}
