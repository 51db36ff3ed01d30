import type { DatabaseSync, SQLInputValue } from 'node:sqlite'

/** A prepared SELECT with the type of its rows. */
export interface Query<Found> {
  get(...values: SQLInputValue[]): Found | undefined
  all(...values: SQLInputValue[]): Found[]
}

/** `Found` must match the columns that `text` selects. */
export function query<Found>(db: DatabaseSync, text: string): Query<Found> {
  return db.prepare(text) as unknown as Query<Found>
}

/**
 * Returns rows as arrays, for queries that read many of them. The driver's row objects are dictionaries, so
 * each access to a field is a hash look-up.
 */
export function arrayQuery<Found extends readonly unknown[]>(db: DatabaseSync, text: string): Query<Found> {
  const statement = db.prepare(text)
  statement.setReturnArrays(true)
  return statement as unknown as Query<Found>
}
