import { drain, type LevelTime } from '../../../handoff/fair-order.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import type { CountDeltas } from './count-deltas.ts'

const times = statement(
  'level-times',
  `SELECT wanted.level,
     greatest(known.virtual, unfolded.virtual, 0)::text AS virtual,
     greatest(known.served, unfolded.served, 0)::text AS served,
     (SELECT r.id FROM baton.ready r WHERE r.level = wanted.level ORDER BY r.rank, r.id LIMIT 1) IS NOT NULL AS waiting
   FROM unnest($1::bigint[]) AS wanted (level)
   LEFT JOIN baton.level known ON known.level = wanted.level
   LEFT JOIN LATERAL (
     SELECT max(d.virtual) AS virtual, max(d.served) AS served FROM baton.count_delta d WHERE d.level = wanted.level
   ) unfolded ON true`,
)

const raise = statement(
  'raise-levels',
  `INSERT INTO baton.level (level, virtual, served)
   SELECT level, max(virtual), max(served) FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS n (level, virtual, served)
   GROUP BY level ORDER BY level
   ON CONFLICT (level) DO UPDATE SET virtual = greatest(level.virtual, excluded.virtual),
     served = greatest(level.served, excluded.served)`,
)

/** Only ever by who holds the roll lock. A level may stand there more than once. */
export function raiseLevels(
  tx: Transaction,
  levels: readonly unknown[],
  virtuals: readonly unknown[],
  serveds: readonly unknown[],
): void {
  tx.post(raise, [levels, virtuals, serveds])
}

/**
 * The times of levels for ranking: brought up to date where nothing on the level waits, and written down with what is
 * ranked. Otherwise whoever is ranked next, and finds somebody waiting, would start earlier than those before. Without
 * `deltas` the caller has the roll lock.
 */
export async function levelsToRank(
  tx: Transaction,
  levels: readonly number[],
  deltas: CountDeltas | null,
): Promise<Map<number, LevelTime>> {
  const found = new Map<number, LevelTime>()
  if (levels.length === 0) return found
  for (const row of await tx.run(times, [[...new Set(levels)]])) {
    const level = row['level'] as number
    const own = deltas?.timeOf(level)
    const time = {
      virtual: larger(BigInt(row['virtual'] as string), own?.virtual),
      served: larger(BigInt(row['served'] as string), own?.served),
    }
    if (row['waiting'] === false && time.served > time.virtual) {
      drain(time)
      if (deltas === null) raiseLevels(tx, [level], [String(time.virtual)], [String(time.served)])
      else deltas.drained(level, time)
    }
    found.set(level, time)
  }
  return found
}

function larger(a: bigint, b = 0n): bigint {
  return a > b ? a : b
}
