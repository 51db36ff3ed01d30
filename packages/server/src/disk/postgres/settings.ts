/**
 * The settings of each transaction, whatever is set for the server, the database or the role. All statements
 * look rows up by index; with the other plans switched off, stale statistics cannot make the planner scan a
 * table of a million partitions. JIT compilation would take longer than the statements.
 */
const SETTINGS = {
  // When off, a NULL in an array parameter is read as the text "NULL".
  array_nulls: 'on',
  // Only PostgreSQL's own functions and operators, even if others with the same name match better.
  search_path: 'pg_catalog',
  lock_timeout: '10s',
  statement_timeout: '30s',
  // A node that is disconnected in the middle of a transaction loses its locks.
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

/** Reads one consistent snapshot. */
export const BEGIN_READING = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${set(SETTINGS)}`

/** A statement that waited for a row lock continues with the updated row. */
export const BEGIN_WRITING = `BEGIN ISOLATION LEVEL READ COMMITTED; ${set(SETTINGS)}`

/** Allows sequential scans, for a recount. */
export const BEGIN_COUNTING = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${set({ search_path: 'pg_catalog', statement_timeout: '0' })}`
