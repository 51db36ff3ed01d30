import type { DatabaseSync, SQLInputValue } from 'node:sqlite'

/** A prepared statement that finds rows, and what each of them has. */
export interface Query<Found> {
  get(...values: SQLInputValue[]): Found | undefined
  all(...values: SQLInputValue[]): Found[]
}

/** `Found` says what the columns are, beside the text that names them. */
export function query<Found>(db: DatabaseSync, text: string): Query<Found> {
  return db.prepare(text) as unknown as Query<Found>
}

/** Rows as arrays, for those of which many are read: as objects they come as dictionaries, whose every access is a hash look-up. */
export function arrayQuery<Found extends readonly unknown[]>(db: DatabaseSync, text: string): Query<Found> {
  const statement = db.prepare(text)
  statement.setReturnArrays(true)
  return statement as unknown as Query<Found>
}
