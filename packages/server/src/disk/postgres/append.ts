import { type Appended, KnownKeys } from '../../handoff/disk.ts'
import type { PartitionDescriptor } from '../../handoff/partition.ts'
import { NotLeader, StoreUnavailable } from '../../handoff/store.ts'
import type { StagedIds } from '../../handoff/stored.ts'
import { insert } from '../statements.ts'
import { arraysOf, insertFrom, postgres, sending, textArray, textOf, unnest } from './dialect.ts'
import { type Connection, prepared, type Statement } from './session/connection.ts'

/**
 * The previous entry must exist and have this node's term. If another node has taken over, it has appended an
 * entry, which took the number that this append needs. Rows that were written since the previous entry must be
 * there, too: a standby that was promoted without the last commits may have the entry alone.
 *
 * synchronous_commit is switched on, whatever the role's setting. A single-statement transaction can only do
 * that with set_config in the statement itself.
 */
const MINE = `baton.entry WHERE number = $1::bigint - 1 AND term = $2::text COLLATE "C"
  AND ($4::bigint IS NULL OR EXISTS (SELECT FROM baton.flushed WHERE writes >= $4))
  AND set_config('synchronous_commit', 'on', true) IS NOT NULL`

const APPEND_ALONE = prepared(
  `INSERT INTO baton.entry (number, term, body) SELECT $1, $2, $3::text FROM ${MINE} RETURNING 1 AS appended`,
)

/** A cached plan for a small table may scan it after it has grown, so PostgreSQL plans again. */
const PLAN_AGAIN_EVERY = 200

const NEW_KEYS = '$5::text[]'
const FIRST_COLUMN = 6

const APPEND = prepared(`
WITH known AS MATERIALIZED (
  SELECT key FROM unnest(${NEW_KEYS}) AS w (name) CROSS JOIN LATERAL
    (SELECT key FROM baton.pull_key WHERE key = w.name COLLATE "C" OFFSET 0) k
), mine AS MATERIALIZED (
  SELECT FROM ${MINE} AND NOT EXISTS (SELECT FROM known)
), appended AS (
  INSERT INTO baton.entry (number, term, body) SELECT $1, $2, $3::text FROM mine RETURNING number
), rows AS (
  ${insertFrom(postgres.descriptors, `mine CROSS JOIN ${unnest(postgres.descriptors, FIRST_COLUMN)}`)}
)
SELECT (SELECT count(*) FROM appended) AS appended, ARRAY(SELECT key FROM known) AS known`)

interface Confirmed {
  readonly term: string
  /** How often rows were written, if that was since the previous entry. */
  readonly writes: number | null
}

/** The entry is executed once at most. After an error it is unknown whether it was stored. */
export async function append(connection: Connection, confirmed: Confirmed, entry: Appended): Promise<void> {
  const warnings = connection.warnings
  const [row] = await connection.run(appendStatement(confirmed, entry))
  // No longer waiting for a standby is a success with a warning. This server could lose the commit.
  if (connection.warnings > warnings) {
    throw new StoreUnavailable(
      'store_unavailable',
      'PostgreSQL stopped waiting for its standby, so the request may be lost; send it again',
    )
  }
  if (entry.number % PLAN_AGAIN_EVERY === 0) void connection.run({ text: 'DISCARD PLANS' }).catch(() => {})
  if (row?.['appended'] === 1) return
  const known = (row?.['known'] ?? []) as string[]
  throw known.length > 0 ? new KnownKeys(known) : new NotLeader()
}

function appendStatement(
  { term, writes }: Confirmed,
  { number, body, newRows, newKeys }: Appended,
): Statement {
  const values = [number, term, body, writes]
  if (newRows.length === 0 && newKeys.length === 0) return { ...APPEND_ALONE, values }
  return { ...APPEND, values: [...values, textArray(newKeys), ...arraysOf(postgres.descriptors, newRows)] }
}

const STAGE = textOf(insert(postgres.descriptors))

export const stageStatements = (rows: readonly PartitionDescriptor[]): Statement[] => [
  ...sending(postgres.descriptors, STAGE, rows),
]

export const unstageStatement = ({ first, last }: StagedIds): Statement => ({
  text: 'DELETE FROM baton.partition WHERE id BETWEEN $1 AND $2',
  values: [first, last],
})
