/**
 * What every session of ours needs, whatever the server's defaults are. A commit is durable. Nobody
 * waits long for a lock, and a node that is cut off in the middle of a transaction loses its locks.
 * All statements are look-ups by index: with the alternatives switched off no stale statistics can
 * talk the planner into reading a table of a million partitions, and with generic plans the tests
 * of the plans test what is run. A table that was empty when it was vacuumed counts as empty until the next vacuum,
 * however much is written into it: then reading it whole and keeping that at hand looks as cheap as looking one row up.
 *
 * Somebody may have set anything else for the role or the database, too. Here is what would change the answers. Dates,
 * intervals, floats, bytea and backslashes do not occur in our statements, so how these are read and written does not
 * matter. `session_replication_role` can be set by a superuser only, so it is not for us to set it back.
 */
const SETTINGS = {
  // Off, a NULL in an array that we send is the text "NULL".
  array_nulls: 'on',
  // What we call is PostgreSQL's own, also where somebody has a function or an operator of that name which fits better.
  search_path: 'pg_catalog',
  // Who waited for a row goes on with what it has become, and what is skipped because it is locked is nobody's conflict.
  default_transaction_isolation: 'read committed',
  synchronous_commit: 'on',
  lock_timeout: '5s',
  statement_timeout: '30s',
  idle_in_transaction_session_timeout: '5s',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_material: 'off',
  jit: 'off',
  plan_cache_mode: 'force_generic_plan',
}

export const sessionSettings = Object.entries(SETTINGS)
  .map(([name, value]) => `SET ${name} = '${value}'`)
  .join('; ')
/** The same, for a session that is lent for one transaction. */
export const transactionSettings = Object.entries(SETTINGS)
  .map(([name, value]) => `SET LOCAL ${name} = '${value}'`)
  .join('; ')
