/** A statement with a name: the server plans it once per connection and keeps the plan. */
export interface Statement {
  readonly name: string
  readonly text: string
}

/** Every statement of the store, so that the test of the query plans misses none. */
export const statements: Statement[] = []

export function statement(name: string, text: string): Statement {
  const named = { name: `baton-${name}`, text }
  statements.push(named)
  return named
}
