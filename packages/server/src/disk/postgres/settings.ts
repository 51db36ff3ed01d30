/**
 * What a transaction of ours needs, whatever is set for the server, the database or the role. All statements are look-ups
 * by index: with the alternatives switched off no stale statistics can talk the planner into reading a table of a million
 * partitions. Compiling a statement takes longer than running it.
 */
const SETTINGS = {
  // Off, a NULL in an array that we send is the text "NULL".
  array_nulls: 'on',
  // What we call is PostgreSQL's own, also where another function or operator of that name fits better.
  search_path: 'pg_catalog',
  lock_timeout: '10s',
  statement_timeout: '30s',
  // A node that is cut off in the middle of a transaction loses its locks.
  idle_in_transaction_session_timeout: '5s',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_material: 'off',
  jit: 'off',
}

const set = (settings: Record<string, string>): string =>
  Object.entries(settings)
    .map(([name, value]) => `SET LOCAL ${name} = '${value}'`)
    .join('; ')

/** Sees one state of everything. */
export const BEGIN_READING = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${set(SETTINGS)}`

/** Who waited for a row goes on with what it has become. */
export const BEGIN_WRITING = `BEGIN ISOLATION LEVEL READ COMMITTED; ${set(SETTINGS)}`

/** Reads tables from end to end, as a recount and a migration do. */
export const BEGIN_COUNTING = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${set({ search_path: 'pg_catalog', statement_timeout: '0' })}`
