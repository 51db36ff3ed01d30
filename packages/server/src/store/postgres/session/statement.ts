/** A statement with a name: the server plans it once per connection and keeps the plan. */
export interface Statement {
  readonly name: string
  readonly text: string
}

/** The database's time in milliseconds, in SQL. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/** Every statement of the store, so that the test of the query plans misses none. */
export const statements: Statement[] = []

export function statement(name: string, text: string): Statement {
  const named = { name: `baton-${name}`, text }
  statements.push(named)
  return named
}
