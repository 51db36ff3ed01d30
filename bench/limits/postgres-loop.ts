import type { Pool } from 'pg'

/**
 * What a team writes by hand on PostgreSQL: a table, a partial index, SKIP LOCKED. No service, no retries,
 * no progress, no order beyond level and arrival.
 */
export const HAND_WRITTEN_SCHEMA = `
  CREATE TABLE partition (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id text NOT NULL,
    table_name text NOT NULL,
    name text NOT NULL,
    records bigint NOT NULL,
    level integer NOT NULL,
    state text NOT NULL DEFAULT 'ready',
    attempt integer NOT NULL DEFAULT 0,
    lease_id uuid,
    expires_at timestamptz
  );
  CREATE INDEX ready ON partition (level, id) WHERE state = 'ready';
`

const FILL = `
  INSERT INTO partition (task_id, table_name, name, records, level)
  SELECT 'bench-17', 'bench.result_17', 'bench-17-' || level || '-' || n, 1000 + n % 9000, level
  FROM generate_series(1, $1::integer) AS n, LATERAL (SELECT (n - 1) % 5000 / 1250 AS level)
`

/**
 * The limit is a literal in the statement: with a parameter, the planner assumes a tenth of the table, which
 * is slower. For one row, a scalar comparison is the fastest of the usual forms. The scenario
 * postgres-one-by-one measures this loop.
 */
function claimStatement(limit: number): string {
  const ready = `SELECT id FROM partition WHERE state = 'ready' ORDER BY level, id LIMIT ${limit} FOR UPDATE SKIP LOCKED`
  return `
    UPDATE partition
    SET state = 'leased', attempt = attempt + 1, lease_id = gen_random_uuid(),
      expires_at = clock_timestamp() + interval '300 seconds'
    WHERE id = ${limit === 1 ? `(${ready})` : `ANY (ARRAY(${ready}))`}
    RETURNING id, task_id, table_name, name, records, level, attempt, lease_id`
}

const SETTLE_ONE = `
  UPDATE partition SET state = 'done', expires_at = NULL WHERE id = $1 AND lease_id = $2 AND state = 'leased'
`

const SETTLE_MANY = `
  UPDATE partition SET state = 'done', expires_at = NULL
  FROM unnest($1::bigint[], $2::uuid[]) AS settled (id, lease_id)
  WHERE partition.id = settled.id AND partition.lease_id = settled.lease_id AND state = 'leased'
`

interface Claimed {
  id: string
  lease_id: string
}

export async function fillByHand(pool: Pool, partitions: number): Promise<void> {
  await pool.query(FILL, [partitions])
  await pool.query('ANALYZE partition')
}

/** Named statements are prepared once per connection. */
export async function claimByHand(pool: Pool, limit: number): Promise<Claimed[]> {
  const { rows } = await pool.query<Claimed>({ name: `claim-${limit}`, text: claimStatement(limit) })
  return rows
}

export async function settleByHand(pool: Pool, claimed: readonly Claimed[]): Promise<void> {
  const [first] = claimed
  if (claimed.length === 1 && first) {
    await pool.query({ name: 'settle-one', text: SETTLE_ONE, values: [first.id, first.lease_id] })
    return
  }
  const ids = claimed.map((row) => row.id)
  const leases = claimed.map((row) => row.lease_id)
  await pool.query({ name: 'settle-many', text: SETTLE_MANY, values: [ids, leases] })
}
