import type { CalledBackPartition } from '@baton/protocol'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import { WINDOW } from '../windows/lanes.ts'

/** The task's row is locked, and with it the right to its lanes; the fill of a claim locks lanes alone. */
const lock = statement(
  'lock-lanes-of-task',
  `SELECT id, level, finish::text AS finish, retry_finish::text AS retry_finish FROM baton.lane
   WHERE task = $1 AND level = ANY($2::bigint[]) ORDER BY id FOR NO KEY UPDATE`,
)
const insert = statement(
  'insert-lanes',
  `INSERT INTO baton.lane (task, level) SELECT $1, level FROM unnest($2::bigint[]) AS n (level) ORDER BY level
   RETURNING id, level`,
)
const windows = statement(
  'windows-of-lanes',
  `SELECT l.id, (SELECT h.id FROM baton.held h WHERE h.lane = l.id ORDER BY h.id LIMIT 1) IS NOT NULL AS has_backlog,
     (SELECT count(*) FROM
       (SELECT FROM baton.ready r WHERE r.lane = l.id AND r.fresh LIMIT ${WINDOW}) w)
       AS ready
   FROM unnest($1::bigint[]) AS l (id)`,
)
const stored = statement(
  'stored-partitions',
  `SELECT p.*, (SELECT name FROM baton.compute_table WHERE id = p.compute_table) AS compute_table_name
   FROM unnest($1::bigint[], $2::bigint[]) AS wanted (lane, idx)
   CROSS JOIN LATERAL (
     SELECT lane, idx, record_count, spelling, compute_table FROM baton.partition
     WHERE lane = wanted.lane AND idx = wanted.idx OFFSET 0
   ) p`,
)
export interface CalledBackLane {
  readonly id: number
  readonly task: number
  readonly level: number
  finish: bigint
  retryFinish: bigint
}

export async function lockLanesOfTask(
  tx: Transaction,
  task: number,
  levels: readonly number[],
): Promise<Map<number, CalledBackLane>> {
  const rows = await tx.run(lock, [task, levels])
  return new Map(
    rows.map((row) => [
      row['level'] as number,
      {
        id: row['id'] as number,
        task,
        level: row['level'] as number,
        finish: BigInt(row['finish'] as string),
        retryFinish: BigInt(row['retry_finish'] as string),
      },
    ]),
  )
}

export async function createLanes(
  tx: Transaction,
  task: number,
  levels: readonly number[],
): Promise<CalledBackLane[]> {
  if (levels.length === 0) return []
  const rows = await tx.write(insert, [task, levels])
  return rows.map((row) => ({
    id: row['id'] as number,
    task,
    level: row['level'] as number,
    finish: 0n,
    retryFinish: 0n,
  }))
}

/** Partitions that may become ready at once at the back of each lane, if it is open. */
export async function roomAtTheBack(tx: Transaction, lanes: readonly number[]): Promise<Map<number, number>> {
  const rows = lanes.length === 0 ? [] : await tx.run(windows, [lanes])
  return new Map(
    rows.map((row) => [
      row['id'] as number,
      row['has_backlog'] === true ? 0 : Math.max(0, WINDOW - (row['ready'] as number)),
    ]),
  )
}

/** What is stored of partitions that were called back before; nothing for those that retention removed. */
export async function storedPartitions(
  tx: Transaction,
  wanted: readonly { readonly lane: CalledBackLane; readonly index: number }[],
): Promise<Map<string, CalledBackPartition>> {
  if (wanted.length === 0) return new Map()
  const levels = new Map(wanted.map(({ lane }) => [lane.id, lane.level]))
  const rows = await tx.run(stored, [wanted.map(({ lane }) => lane.id), wanted.map(({ index }) => index)])
  return new Map(
    rows.map((row) => {
      const lane = row['lane'] as number
      const index = row['idx'] as number
      return [
        `${lane}-${index}`,
        {
          level: levels.get(lane) ?? 0,
          index,
          recordCount: row['record_count'] as number,
          computeTableName: row['compute_table_name'] as string,
          spelling: row['spelling'] as string | null,
        },
      ]
    }),
  )
}
