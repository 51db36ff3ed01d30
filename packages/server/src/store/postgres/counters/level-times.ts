import { drain, type LevelTime } from '../../../handoff/rules/fair-order.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import type { CountDeltas } from './count-deltas.ts'

/** What is not folded in yet is read once, however many levels are asked for. */
const times = statement(
  'level-times',
  `WITH unfolded AS MATERIALIZED (
     SELECT level, max(virtual) AS virtual, max(served) AS served FROM baton.count_delta
     WHERE served IS NOT NULL GROUP BY level
   )
   SELECT wanted.level,
     greatest(known.virtual, unfolded.virtual, 0)::text AS virtual,
     greatest(known.served, unfolded.served, 0)::text AS served,
     (SELECT r.id FROM baton.ready r WHERE r.level = wanted.level ORDER BY r.rank, r.id LIMIT 1) IS NOT NULL AS waiting
   FROM unnest($1::bigint[]) AS wanted (level)
   LEFT JOIN baton.level known ON known.level = wanted.level
   LEFT JOIN unfolded ON unfolded.level = wanted.level`,
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
  const drained: [level: number, time: LevelTime][] = []
  for (const row of await tx.run(times, [[...new Set(levels)]])) {
    const level = row['level'] as number
    const own = deltas?.timeOf(level)
    const time = {
      virtual: larger(BigInt(row['virtual'] as string), own?.virtual),
      served: larger(BigInt(row['served'] as string), own?.served),
    }
    if (row['waiting'] === false && time.served > time.virtual) {
      drain(time)
      deltas?.drained(level, time)
      drained.push([level, time])
    }
    found.set(level, time)
  }
  if (deltas === null && drained.length > 0) {
    raiseLevels(
      tx,
      drained.map(([level]) => level),
      drained.map(([, { virtual }]) => String(virtual)),
      drained.map(([, { served }]) => String(served)),
    )
  }
  return found
}

function larger(a: bigint, b = 0n): bigint {
  return a > b ? a : b
}
