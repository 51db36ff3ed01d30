import type { Kind } from './fields.ts'
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

/** Some rows of one section, or none. */
export type RowBatch = {
  [Name in Section]: { readonly section: Name; readonly rows: readonly StoredRows[Name][] }
}[Section]

/** A snapshot of a store, to be read once. */
export interface ArchiveSource {
  readonly nextIds: NextIds
  readonly counts: PerSection<number>
  /** Every section in its order, also those without rows. */
  batches(): AsyncIterable<RowBatch>
  /** Bodies of entries that are durable but not flushed. */
  readonly unflushed: readonly string[]
}

/** The number of rows that were read, of how many. */
export type Progress = (done: number, total: number) => void

export function withProgress(source: ArchiveSource, progress: Progress | undefined): ArchiveSource {
  const total = sections.reduce((sum, section) => sum + source.counts[section], 0)
  async function* batches() {
    let done = 0
    for await (const batch of source.batches()) {
      yield batch
      done += batch.rows.length
      progress?.(done, total)
    }
  }
  return { ...source, batches }
}
