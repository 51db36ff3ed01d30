import { MAX_LISTED_MISMATCHES } from '@baton/protocol'
import type { Asked, Conditions, Query, Value } from '../statements.ts'
import type { Row, Statement } from './session/connection.ts'
import { plainArray, textArray } from './tables.ts'

export const conditions: Conditions = {
  openTasks: 'WHERE is_open',
  tasksWithParked: 'WHERE has_parked',
  tasksWithReruns: "WHERE has_work AND reruns::text <> '[]'",
  tasksWithStagedRows: 'WHERE has_work AND staging IS NOT NULL',
  tasksToPurge: 'WHERE purged_at IS NULL AND has_work IS NULL',
  // Written as a range so that the planner uses the index by state. With an equality it may read the index by
  // id instead: if nearly all tasks are in one state, it misjudges how many are in another.
  tasksInState: 'WHERE state >= ?1 AND (state, id) < (?1, ?2) ORDER BY state DESC, id DESC',
  openLanes: 'WHERE is_open',
  leasedPartitions: 'WHERE lease_ends_at IS NOT NULL',
  heldPartitions: 'WHERE leased_by IS NOT NULL',
  delayedPartitions: 'WHERE delayed_until IS NOT NULL',
  returnedPartitions: 'WHERE returned_at IS NOT NULL',
  parkedPartitions: 'WHERE is_parked',
  begunPartitions: 'WHERE is_begun',
  partitionsOfSeveral: 'WHERE of_several AND compute_table = ?',
  failedPartitions: 'WHERE failure = ?',
  partitionsParkedAs: 'WHERE parked_as = ?',
  partitionsByIndex: 'WHERE true',
  pendingDeliveries: 'WHERE pending',
  endedInstances: 'WHERE draining',
  tablesOfTask: 'baton.task_table WHERE task_table.task = task.id',
  mismatchesOfTask: `(SELECT id, level FROM baton.lane WHERE lane.task = task.id AND task.mismatched > 0
      ORDER BY level) lane CROSS JOIN LATERAL
    (SELECT * FROM baton.partition WHERE partition.lane = lane.id AND is_mismatch ORDER BY idx
     LIMIT ${MAX_LISTED_MISMATCHES}) partition ORDER BY lane.level, partition.idx`,
  // Written as a range of the primary key. With equalities the planner would use the index by age.
  throughputOfTask: 'WHERE (task, step, at) >= (?1, ?2, ?3) AND (task, step, at) < (?1, ?2, ?4)',
  auditOfTask: 'WHERE task_id = ?',
  auditByName: 'WHERE name = ?',
  leasedBy: 'leased_by',
  leaseEndsAt: 'lease_ends_at',
  delayedUntil: 'delayed_until',
  returnedAt: 'returned_at',
}

/** Rows are read as JSON arrays. */
export const selectStatement = <Found>(
  { selected, from }: Query<Found>,
  values: readonly Value[],
): Statement => ({
  text: `SELECT json_build_array(${selected}) AS row FROM ${withValues(from, (at) => `$${at}`, values)}`,
  values,
})

/** The rows for each of these values, which a query has in the same order. */
export function listsStatement<Found>(
  { selected, from }: Query<Found>,
  values: readonly (readonly Value[])[],
): Statement {
  const first = values[0] ?? []
  const arrays = first.map((value, at) => `$${at + 1}::${typeof value === 'string' ? 'text' : 'bigint'}[]`)
  const names = first.map((_, at) => `value${at + 1}`)
  return {
    text: `SELECT (SELECT json_agg(row) FROM
        (SELECT json_build_array(${selected}) AS row FROM ${withValues(from, (at) => `asked.value${at}`, first)}) found) AS list
      FROM unnest(${arrays.join(', ')}) WITH ORDINALITY AS asked (${[...names, 'place'].join(', ')}) ORDER BY place`,
    values: first.map((value, at) => {
      const all = values.map((one) => one[at])
      return typeof value === 'string' ? textArray(all as string[]) : plainArray(all as number[])
    }),
  }
}

export const valuesIn = (row: Row): unknown[] => row['row'] as unknown[]

export const listIn = (row: Row): unknown[][] => (row['list'] ?? []) as unknown[][]

/** By query, with their places. */
export const byQuery = <Found>(asked: readonly Asked<Found>[]) => [
  ...Map.groupBy(
    asked.map(({ query, values }, place) => ({ query, values, place })),
    ({ query }) => query,
  ),
]

/** Numbers parameters as SQLite does: one without a number is the next one. */
function withValues(text: string, nameOf: (at: number) => string, values: readonly Value[]): string {
  let last = 0
  return text.replaceAll(/\?(\d*)/g, (_, number: string) => {
    const at = number === '' ? last + 1 : Number(number)
    last = Math.max(last, at)
    return `${nameOf(at)}::${typeof values[at - 1] === 'string' ? 'text COLLATE "C"' : 'bigint'}`
  })
}
