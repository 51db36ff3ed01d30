import { MAX_LISTED_GAPS, MAX_LISTED_LEVELS, MAX_LISTED_MISMATCHES, MAX_LISTED_TABLES } from '@baton/protocol'
import type { LaneDetail, TaskDetail, TaskPageQuery, TaskSummary } from '../../handoff/disk.ts'
import type { IndexRange } from '../../handoff/rules/index-runs.ts'
import { PACE_SECONDS_KEPT } from '../../handoff/views/eta.ts'
import type { PaceSecond } from '../../handoff/views/queries.ts'
import type { Row, Statement } from './session/connection.ts'
import { asJson, lanes, plainArray, tasks, textArray } from './tables.ts'

/** In SQL: the summary of a task, newest seconds first. */
const SUMMARY = `${asJson(tasks, 't')} AS task,
  (SELECT ${asJson(lanes, 'l')} FROM baton.lane l WHERE l.task = t.id AND l.level = t.open_level) AS open_lane,
  ARRAY(SELECT json_build_array(second, partitions, records) FROM baton.pace
        WHERE task = t.id ORDER BY second DESC LIMIT ${PACE_SECONDS_KEPT}) AS pace`

export function taskPageStatement({ before, limit, which }: TaskPageQuery): Statement {
  const page = (where: string, order: string, values: readonly unknown[]): Statement => ({
    text: `SELECT ${SUMMARY} FROM
      (SELECT * FROM baton.task t WHERE ${where} ORDER BY ${order} LIMIT $2) t ORDER BY t.id DESC`,
    values: [before, limit, ...values],
  })
  if (which === 'all') return page('id < $1', 'id DESC', [])
  if (which === 'parked') return page('has_parked AND id < $1', 'id DESC', [])
  // Written as a range so that the planner uses the index by state. With an equality it may read the index by
  // id instead: if nearly all tasks are in one state, it misjudges how many are in another.
  const state = '$3::text COLLATE "C"'
  return page(`state >= ${state} AND (state, id) < (${state}, $1)`, 'state DESC, id DESC', [which.state])
}

export const taskSummariesStatement = (ids: readonly number[]): Statement => ({
  text: `SELECT ${SUMMARY} FROM unnest($1::bigint[]) WITH ORDINALITY AS w (id, at) CROSS JOIN LATERAL
    (SELECT * FROM baton.task WHERE id = w.id OFFSET 0) t ORDER BY w.at`,
  values: [plainArray(ids)],
})

/** Each EXISTS stops at the first matching name, after at most as many others as `tables` has. */
export function tasksWithTablesStatement(ids: readonly number[], tables: readonly string[]): Statement {
  const has = (rule: string) =>
    `EXISTS (SELECT FROM baton.task_table c WHERE c.task = w.id AND c.name ${rule})`
  return {
    text: `SELECT w.id AS task, ${has('<> ALL ($2::text[])')} AS has_others
      FROM unnest($1::bigint[]) AS w (id) WHERE ${has('= ANY ($2::text[])')}`,
    values: [plainArray(ids), textArray(tables)],
  }
}

export const doneRowsStatement = (task: number): Statement => ({
  text: `SELECT sum(greatest(0, done_partitions - purged))::bigint AS done FROM baton.lane WHERE task = $1`,
  values: [task],
})

/** Reads counters and short lists, never all partitions. */
export const taskDetailStatement = (taskId: string): Statement => ({
  text: `SELECT ${SUMMARY},
      (SELECT count(*) FROM baton.lane l WHERE l.task = t.id) AS lane_count,
      ARRAY(SELECT json_build_array(${asJson(lanes, 'l')},
          ARRAY(SELECT json_build_array(first, last) FROM baton.lane_range
                WHERE lane = l.id ORDER BY first LIMIT ${MAX_LISTED_GAPS + 1}),
          (SELECT last FROM baton.lane_range WHERE lane = l.id ORDER BY first DESC LIMIT 1))
        FROM (SELECT * FROM baton.lane WHERE task = t.id ORDER BY level LIMIT ${MAX_LISTED_LEVELS}) l
        ORDER BY l.level) AS lanes,
      ARRAY(SELECT name FROM baton.task_table WHERE task = t.id ORDER BY position LIMIT ${MAX_LISTED_TABLES}) AS tables,
      CASE WHEN t.mismatched > 0 THEN ARRAY(
        SELECT json_build_object('level', l.level, 'index', p.idx, 'spelling', p.spelling,
          'declared', p.record_count, 'reported', p.reported_records)
        FROM (SELECT id, level FROM baton.lane WHERE task = t.id ORDER BY level) l CROSS JOIN LATERAL
          (SELECT * FROM baton.partition WHERE lane = l.id AND is_mismatch ORDER BY idx LIMIT ${MAX_LISTED_MISMATCHES}) p
        ORDER BY l.level, p.idx LIMIT ${MAX_LISTED_MISMATCHES}) END AS mismatches
    FROM baton.task t WHERE t.task_id = $1::text COLLATE "C"`,
  values: [taskId],
})

/** Uses the indexes by lease end and by end of delay, and the primary key of lanes. */
export const leasedOrDelayedStatement = (limit: number): Statement => {
  const part = (column: string) =>
    `(SELECT * FROM baton.partition WHERE ${column} IS NOT NULL ORDER BY ${column}, id LIMIT $1)`
  return {
    text: `SELECT json_build_object('task', l.task, 'level', l.level, 'index', p.idx, 'spelling', p.spelling,
        'state', p.state, 'holder', p.holder, 'leasedAt', coalesce(p.leased_at, 0), 'dueAt', p.due_at,
        'recordCount', p.record_count) AS found
      FROM (${part('lease_ends_at')} UNION ALL ${part('delayed_until')}) p JOIN baton.lane l ON l.id = p.lane`,
    values: [limit],
  }
}

type Values = readonly unknown[]

export function readSummary(row: Row): TaskSummary {
  const openLane = row['open_lane'] as Values | null
  return {
    task: tasks.read(row['task'] as Values),
    openLane: openLane === null ? null : lanes.read(openLane),
    pace: (row['pace'] as [number, number, number][]).map(
      ([second, partitions, records]): PaceSecond => ({ second, partitions, records }),
    ),
  }
}

export function readDetail(row: Row): TaskDetail {
  const details = row['lanes'] as [Values, [number, number][], number | null][]
  return {
    ...readSummary(row),
    laneCount: row['lane_count'] as number,
    lanes: details.map(
      ([lane, ranges, lastIndex]): LaneDetail => ({
        lane: lanes.read(lane),
        ranges: ranges.map(([first, last]): IndexRange => ({ first, last })),
        lastIndex: lastIndex ?? 0,
      }),
    ),
    computeTables: row['tables'] as string[],
    mismatches: (row['mismatches'] ?? []) as TaskDetail['mismatches'],
  }
}
