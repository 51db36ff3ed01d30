import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { PartitionDescriptor, StagedIds } from '../../handoff/stored.ts'
import { descriptors, plainDescriptors } from './tables.ts'

/** Rows per statement: one at a time takes 2.5 µs each, 50 at a time 1.1. */
const ROWS_AT_ONCE = 50

/** Writes the rows of partitions that were called back. */
export class NewRows {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  insert(rows: readonly PartitionDescriptor[]): void {
    const { one, many, valuesOf } = rows.every(isPlain) ? this.#sql.plain : this.#sql.whole
    const inFullStatements = rows.length - (rows.length % ROWS_AT_ONCE)
    for (let at = 0; at < inFullStatements; at += ROWS_AT_ONCE)
      many.run(...valuesOf(rows.slice(at, at + ROWS_AT_ONCE)))
    for (const row of rows.slice(inFullStatements)) one.run(...valuesOf([row]))
  }

  remove({ first, last }: StagedIds): void {
    this.#sql.remove.run(first, last)
  }
}

/** A parameter that is always null is not free: what few rows have is left to a statement of its own. */
const isPlain = ({ extraFields, traceparent }: PartitionDescriptor): boolean =>
  extraFields === null && traceparent === null

/** In the order of the columns of `plainDescriptors`. Written out: a large call-back is nothing but these. */
function plainValuesOf(rows: readonly PartitionDescriptor[]): SQLInputValue[] {
  const values: SQLInputValue[] = []
  for (const { id, lane, index, recordCount, computeTable, spelling, calledBackAt } of rows)
    values.push(id, lane, index, recordCount, computeTable, spelling, calledBackAt)
  return values
}

const valuesOf = (rows: readonly PartitionDescriptor[]): SQLInputValue[] =>
  rows.flatMap((row) => descriptors.values(row))

function prepare(db: DatabaseSync) {
  const statements = ({ insert, names }: typeof descriptors | typeof plainDescriptors) => {
    const more = `, (${names.map(() => '?').join(', ')})`
    return { one: db.prepare(insert), many: db.prepare(insert + more.repeat(ROWS_AT_ONCE - 1)) }
  }
  return {
    plain: { ...statements(plainDescriptors), valuesOf: plainValuesOf },
    whole: { ...statements(descriptors), valuesOf },
    remove: db.prepare('DELETE FROM partition WHERE id BETWEEN ? AND ?'),
  }
}
