import type { LaneEntry, TaskEntry } from '../../../handoff/rules/task-entry.ts'
import { PACE_SECONDS_KEPT } from '../../../handoff/shown/eta.ts'
import { raiseLevels } from '../counters/level-times.ts'
import type { UnfoldedSum } from '../counters/unfolded.ts'
import { counterColumns } from '../rows/entries.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'

const assign = (columns: readonly string[]) => columns.map((column) => `${column} = r.${column}`).join(', ')

const laneTags = ['finish', 'retry_finish', 'parked_skipped', 'purged', 'purged_records']
const lanesSaved = statement(
  'save-lanes',
  `UPDATE baton.lane l SET ${assign([...laneTags, ...counterColumns])}
   FROM json_populate_recordset(NULL::baton.lane, $1) AS r WHERE l.id = r.id`,
)
const taskColumns = [
  ...[
    'state',
    'paused',
    'cancelled',
    'sealed',
    'expected_partitions',
    'level_barrier',
    'open_level',
    'generation',
  ],
  ...['finished_at', 'purged_at', 'delivered', 'attempts_wasted', 'reported_declared', 'reported_records'],
  'mismatched',
]
const tasksSaved = statement(
  'save-tasks',
  `UPDATE baton.task t SET ${assign([...taskColumns, ...counterColumns])}, changed = nextval('baton.change_order')
   FROM json_populate_recordset(NULL::baton.task, $1) AS r WHERE t.id = r.id`,
)
const paceSaved = statement(
  'save-pace',
  `INSERT INTO baton.pace (task, second, partitions, records)
   SELECT task, second, sum(partitions), least(sum(records), ${Number.MAX_SAFE_INTEGER})
   FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS n (task, second, partitions, records)
   GROUP BY task, second
   ON CONFLICT (task, second) DO UPDATE SET partitions = pace.partitions + excluded.partitions,
     records = least(pace.records + excluded.records, ${Number.MAX_SAFE_INTEGER})`,
)
const paceForgotten = statement(
  'forget-pace',
  `DELETE FROM baton.pace p USING unnest($1::bigint[]) AS n (task)
   WHERE p.task = n.task AND p.second <
     (SELECT second FROM baton.pace k WHERE k.task = n.task ORDER BY second DESC LIMIT 1 OFFSET ${PACE_SECONDS_KEPT})`,
)
const parkedNoted = statement(
  'note-parked',
  `INSERT INTO baton.parked_notice (position, partition)
   SELECT nextval('baton.change_order'), partition FROM unnest($1::bigint[]) AS n (partition)`,
)

export function saveLanes(tx: Transaction, lanes: readonly LaneEntry[]): void {
  if (lanes.length === 0) return
  const rows = lanes.map((lane) => ({
    id: lane.id,
    finish: String(lane.finish),
    retry_finish: String(lane.retryFinish),
    parked_skipped: lane.parkedSkipped,
    purged: lane.purged,
    purged_records: lane.purgedRecords,
    ...counters(lane),
  }))
  tx.post(lanesSaved, [JSON.stringify(rows)])
}

export function saveTasks(tx: Transaction, tasks: readonly TaskEntry[]): void {
  if (tasks.length === 0) return
  const rows = tasks.map((task) => ({
    id: task.id,
    state: task.state,
    paused: task.paused,
    cancelled: task.cancelled,
    sealed: task.sealed,
    expected_partitions: task.expectedPartitions,
    level_barrier: task.levelBarrier,
    open_level: task.openLevel,
    generation: task.generation,
    finished_at: task.finishedAt,
    purged_at: task.purgedAt,
    delivered: task.delivered,
    attempts_wasted: task.attemptsWasted,
    reported_declared: task.reportedDeclared,
    reported_records: task.reportedRecords,
    mismatched: task.mismatched,
    ...counters(task),
  }))
  tx.post(tasksSaved, [JSON.stringify(rows)])
}

export function saveLevels(tx: Transaction, sums: readonly UnfoldedSum[]): void {
  const moved = sums.filter(({ row }) => row['served_text'] !== null)
  if (moved.length === 0) return
  const column = (name: string) => moved.map(({ row }) => row[name])
  raiseLevels(tx, column('level'), column('virtual_text'), column('served_text'))
}

export function savePace(tx: Transaction, sums: readonly UnfoldedSum[]): void {
  const finished = sums.filter(({ row }) => row['second'] !== null)
  if (finished.length === 0) return
  const column = (name: string) => finished.map(({ row }) => row[name])
  const tasks = column('task')
  tx.post(paceSaved, [tasks, column('second'), column('finished_partitions'), column('finished_records')])
  tx.post(paceForgotten, [[...new Set(tasks)]])
}

export function saveParked(tx: Transaction, sums: readonly UnfoldedSum[]): void {
  const parked = sums.flatMap(({ row }) => (row['parked'] as string | null)?.split(',') ?? [])
  if (parked.length > 0) tx.post(parkedNoted, [parked])
}

function counters({
  partitions,
  records,
}: Pick<LaneEntry, 'partitions' | 'records'>): Record<string, number> {
  const columns: Record<string, number> = {}
  for (const state of Object.keys(partitions) as (keyof typeof partitions)[]) {
    columns[`${state}_partitions`] = partitions[state]
    columns[`${state}_records`] = records[state]
  }
  return columns
}
