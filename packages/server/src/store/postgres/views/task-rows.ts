import { MAX_LISTED_GAPS, MAX_LISTED_LEVELS, MAX_LISTED_MISMATCHES, MAX_LISTED_TABLES } from '@baton/protocol'
import { gapsBetween, type IndexRange } from '../../../handoff/rules/index-runs.ts'
import { PACE_SECONDS_KEPT } from '../../../handoff/shown/eta.ts'
import type {
  LaneFacts,
  PaceSecond,
  TaskPage,
  TaskQuery,
  TaskRecord,
  TaskRow,
} from '../../../handoff/shown/task-record.ts'
import { TASKS_SEARCHED, tasksReadAtATime } from '../../../handoff/shown/view-limits.ts'
import { laneColumns, readTallies, readTask, taskColumns } from '../rows/entries.ts'
import { type Row, statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'

const taskByName = statement('task', `SELECT ${taskColumns('t')} FROM baton.task t WHERE task_id = $1`)
const newest = statement(
  'newest-tasks',
  `SELECT ${taskColumns('t')} FROM baton.task t WHERE id < $1 ORDER BY id DESC LIMIT $2`,
)
/**
 * One state is said as a range of the index by state: as an equality it would leave the order to the index of ids, and
 * where all tasks are in one state the planner takes those in another for just as many.
 */
const newestIn = statement(
  'newest-tasks-in-state',
  `SELECT ${taskColumns('t')} FROM baton.task t WHERE state >= $3 AND (state, id) < ($3, $1)
   ORDER BY state DESC, id DESC LIMIT $2`,
)
const newestWithParked = statement(
  'newest-tasks-with-parked',
  `SELECT ${taskColumns('t')} FROM baton.task t
   WHERE parked_partitions > 0 AND NOT cancelled AND id < $1 ORDER BY id DESC LIMIT $2`,
)
const openLanes = statement(
  'open-lanes',
  `SELECT ${laneColumns} FROM baton.lane
   WHERE (task, level) IN (SELECT * FROM unnest($1::bigint[], $2::bigint[]))`,
)
const pace = statement(
  'pace',
  `SELECT p.* FROM unnest($1::bigint[]) AS wanted (task) CROSS JOIN LATERAL
     (SELECT task, second, partitions, records FROM baton.pace WHERE task = wanted.task
      ORDER BY second DESC LIMIT ${PACE_SECONDS_KEPT}) p`,
)
const lanes = statement(
  'lanes-of-task',
  `SELECT ${laneColumns} FROM baton.lane WHERE task = $1 ORDER BY level LIMIT ${MAX_LISTED_LEVELS}`,
)
const laneCount = statement('lane-count', 'SELECT count(*) AS lanes FROM baton.lane WHERE task = $1')
const ranges = statement<IndexRange & { readonly lane: number }>(
  'ranges-of-lanes',
  `SELECT wanted.lane, r.first, r.last FROM unnest($1::bigint[]) AS wanted (lane) CROSS JOIN LATERAL
     (SELECT first, last FROM baton.lane_range WHERE lane = wanted.lane ORDER BY first LIMIT ${MAX_LISTED_GAPS + 1}) r`,
)
const lastRanges = statement<{ readonly lane: number; readonly last: number }>(
  'last-range-of-lanes',
  `SELECT wanted.lane, r.last FROM unnest($1::bigint[]) AS wanted (lane) CROSS JOIN LATERAL
     (SELECT last FROM baton.lane_range WHERE lane = wanted.lane ORDER BY first DESC LIMIT 1) r`,
)
const tables = statement(
  'compute-tables-of-task',
  `SELECT c.name FROM baton.task_compute_table t JOIN baton.compute_table c ON c.id = t.compute_table
   WHERE t.task = $1 ORDER BY t.compute_table LIMIT ${MAX_LISTED_TABLES}`,
)
const mismatches = statement<TaskRecord['mismatches'][number]>(
  'mismatches',
  `SELECT l.level, p.idx AS index, p.spelling, p.record_count AS declared, p.reported_records AS reported
   FROM (SELECT id, level FROM baton.lane WHERE task = $1 ORDER BY level) l CROSS JOIN LATERAL
     (SELECT idx, spelling, record_count, reported_records FROM baton.partition
      WHERE lane = l.id AND reported_records IS NOT NULL AND reported_records <> record_count
      ORDER BY idx LIMIT ${MAX_LISTED_MISMATCHES}) p
   LIMIT ${MAX_LISTED_MISMATCHES}`,
)

/** A task for those who look: counters and short lists, never a walk over partitions. */
export async function taskRecord(tx: Transaction, taskId: string): Promise<TaskRecord | null> {
  const [row] = await tx.run(taskByName, [taskId])
  if (row === undefined) return null
  const id = row['id']
  const [rows, laneRows, counted, names, unequal, now] = await Promise.all([
    taskRows(tx, [row]),
    tx.run(lanes, [id]),
    tx.run(laneCount, [id]),
    tx.run(tables, [id]),
    row['mismatched'] === 0 ? [] : tx.run(mismatches, [id]),
    tx.now(),
  ])
  const [task] = rows
  if (task === undefined) return null
  return {
    ...task,
    now,
    lanes: await laneFacts(tx, laneRows),
    lanesOmitted: (counted[0]?.['lanes'] as number) - laneRows.length,
    computeTables: names.map(({ name }) => name as string),
    mismatches: unequal,
  }
}

export async function taskPage(tx: Transaction, query: TaskQuery): Promise<TaskPage> {
  const { state, parked, before, limit, search } = query
  const now = await tx.now()
  const found: Row[] = []
  const atATime = tasksReadAtATime(query)
  let position = before ?? Number.MAX_SAFE_INTEGER
  let read = 0
  while (read < TASKS_SEARCHED) {
    const rows =
      state === null || parked
        ? await tx.run(parked ? newestWithParked : newest, [position, atATime])
        : await tx.run(newestIn, [position, atATime, state])
    for (const row of rows) {
      if (found.length === limit) return { now, tasks: await taskRows(tx, found), next: position }
      position = row['id'] as number
      const isInState = state === null || row['state'] === state
      if (isInState && (search === null || (row['task_id'] as string).includes(search))) found.push(row)
    }
    if (rows.length < atATime) return { now, tasks: await taskRows(tx, found), next: null }
    read += rows.length
  }
  return { now, tasks: await taskRows(tx, found), next: position }
}

/** Tasks with what else is shown of them in a list. */
export async function taskRows(tx: Transaction, rows: readonly Row[]): Promise<TaskRow[]> {
  if (rows.length === 0) return []
  const withOpenLevel = rows.filter((row) => row['open_level'] !== null)
  const [seconds, open] = await Promise.all([
    tx.run(pace, [rows.map((row) => row['id'])]),
    withOpenLevel.length === 0
      ? []
      : tx.run(openLanes, [
          withOpenLevel.map((row) => row['id']),
          withOpenLevel.map((row) => row['open_level']),
        ]),
  ])
  const secondsOf = Map.groupBy(seconds, (row) => row['task'] as number)
  const openOf = new Map(open.map((row) => [row['task'] as number, row]))
  return rows.map((row) => {
    const facts = readTask(row)
    const openLane = openOf.get(facts.id)
    return {
      facts,
      openLane:
        openLane === undefined
          ? null
          : { parkedSkipped: openLane['parked_skipped'] as boolean, ...readTallies(openLane) },
      pace: (secondsOf.get(facts.id) ?? []).map(
        ({ second, partitions, records }) => ({ second, partitions, records }) as PaceSecond,
      ),
    }
  })
}

async function laneFacts(tx: Transaction, rows: readonly Row[]): Promise<LaneFacts[]> {
  const ids = rows.map((row) => row['id'] as number)
  const [firsts, lasts] = await Promise.all([tx.run(ranges, [ids]), tx.run(lastRanges, [ids])])
  const rangesOf = Map.groupBy(firsts, ({ lane }) => lane)
  const lastOf = new Map(lasts.map(({ lane, last }) => [lane, last]))
  return rows.map((row) => {
    const id = row['id'] as number
    const known = rangesOf.get(id) ?? []
    return {
      level: row['level'] as number,
      parkedSkipped: row['parked_skipped'] as boolean,
      ...readTallies(row),
      firstIndex: known[0]?.first ?? 0,
      lastIndex: lastOf.get(id) ?? 0,
      gaps: gapsBetween(known),
    }
  })
}
