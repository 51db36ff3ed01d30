/** What a statement finds, as far as it is not said more closely. */
export type Row = Record<string, unknown>

/** A statement with a name: the server plans it once per connection and keeps the plan. */
export interface Statement<Found = Row> {
  readonly name: string
  readonly text: string
  /** For the compiler alone: what each row of the answer has. */
  readonly found?: Found
}

/** The database's time in milliseconds, in SQL. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/** Every statement of the store, so that the test of the query plans misses none. */
export const statements: Statement<unknown>[] = []

/** `Found` says what the columns are, beside the text that names them. */
export function statement<Found = Row>(name: string, text: string): Statement<Found> {
  const named = { name: `baton-${name}`, text }
  statements.push(named)
  return named
}
