import { MAX_THROUGHPUT_POINTS, STEP_MILLIS, type ThroughputStep } from '@baton/protocol'
import type { Disk, TaskDetail, TaskWithLane } from '../../disk.ts'
import type { StoredPartition } from '../../partition.ts'
import { mainReason } from '../../rules/failures.ts'
import { gapsBetween } from '../../rules/index-runs.ts'
import { backoffMillis, leaseMillis, policyOf } from '../../rules/policy.ts'
import { exists } from '../../rules/task.ts'
import type { StoredTask } from '../../stored.ts'
import { TASKS_SEARCHED, tasksReadAtATime } from '../../views/partition-walk.ts'
import type {
  Amount,
  LaneFacts,
  SettingsOfTask,
  TaskDetails,
  TaskPage,
  TaskQuery,
  TaskRow,
  ThroughputHistory,
  ThroughputQuery,
} from '../../views/queries.ts'
import type { LeasedOrDelayed, Timing } from '../../views/time-left.ts'
import { progressView } from '../../views/view-state.ts'
import { ALL_TASKS, beginOf } from '../throughput.ts'
import { heldIn, type ViewSource } from './view-source.ts'

// Views for the API and the page, read from rows. Rows contain the state of partitions. Whether a waiting
// partition is ready or held, and whether the rest of a cancelled task is cancelled, is derived from the
// task and from the settings of compute tables.

/** For the time left. Leases of dead workers are among the first to end. */
const LEASES_READ = 2000
const LEASES_READ_FOR_LISTS = 500
/** A lease that ends this much later than its original duration was renewed. */
const RENEWAL_MILLIS = 500

/** If the query names tables: whether the task has other tables too. */
type ChosenSummary = TaskWithLane & Pick<TaskRow, 'hasOtherTables'>

export async function readTask(source: ViewSource, taskId: string): Promise<TaskDetails | null> {
  const { disk, memory, now } = source
  const detail = await disk.taskDetail(taskId)
  if (detail === null || !exists(detail.task)) return null
  const { lanes, laneCount, computeTables, mismatches } = detail
  const row = taskRow(detail, await readTiming(source, [detail], LEASES_READ), source)
  return {
    ...row,
    now,
    lanes: lanes.map((lane) => laneFacts(lane, heldIn(memory, detail.task.id, lane.lane.level))),
    lanesOmitted: laneCount - lanes.length,
    computeTables,
    mismatches,
    failures: detail.task.failures ?? [],
  }
}

/** Flushes nothing, because refused requests come here too. A task that is not in memory is flushed. */
export async function readSettings(
  { disk, memory }: ViewSource,
  taskId: string,
): Promise<SettingsOfTask | null> {
  const task = memory.tasksByName.get(taskId) ?? (await disk.tasksNamed([taskId]))[0]
  if (task === undefined) return null
  const { settings, levelBarrier, owners } = task
  return { taskId, settings, levelBarrier, owners, calledBack: exists(task) }
}

export async function readTasks(source: ViewSource, query: TaskQuery): Promise<TaskPage> {
  const { disk, now } = source
  const { state, parked, before, limit, tasks = null } = query
  if (tasks !== null) return { now, tasks: await readTasksNamed(source, tasks, query), next: null }
  const which = parked ? 'parked' : state === null ? 'all' : { state }
  const atATime = tasksReadAtATime(query)
  const found: ChosenSummary[] = []
  const hasTables = query.tables != null
  const leasesRead = hasTables ? LEASES_READ : LEASES_READ_FOR_LISTS
  const page = async (next: number | null): Promise<TaskPage> => ({
    now,
    tasks: await rowsOf(source, found, leasesRead),
    next,
  })
  let position = before ?? Number.MAX_SAFE_INTEGER
  let read = 0
  while (read < (hasTables ? limit : TASKS_SEARCHED)) {
    const summaries = await disk.taskPage({ which, before: position, limit: atATime })
    for (const summary of await havingTables(disk, summaries, query)) {
      if (found.length === limit) return page(position)
      const { task } = summary
      position = task.id
      if (isFound(task, query)) found.push(summary)
    }
    if (summaries.length < atATime) return page(null)
    position = summaries.at(-1)?.task.id ?? position
    read += summaries.length
  }
  return page(position)
}

const isFound = (task: StoredTask, { state, search }: TaskQuery): boolean =>
  exists(task) &&
  (state === null || task.state === state) &&
  (search === null || task.taskId.includes(search))

/** Returns the named tasks in one page: a request names only a few. */
async function readTasksNamed(
  source: ViewSource,
  names: readonly string[],
  query: TaskQuery,
): Promise<TaskRow[]> {
  const { disk } = source
  const { parked } = query
  const ids = (await disk.tasksNamed(names)).map(({ id }) => id)
  const summaries = await havingTables(disk, await disk.tasksWithLane(ids), query)
  const found = summaries.filter(
    ({ task }) => isFound(task, query) && !(parked && (task.cancelled || task.partitions.parked === 0)),
  )
  return rowsOf(
    source,
    found.toSorted((a, b) => b.task.id - a.task.id),
    LEASES_READ,
  )
}

/** Keeps the tasks that have a table named by the query; all tasks if it names none. */
async function havingTables(
  disk: Disk,
  summaries: readonly TaskWithLane[],
  { tables = null }: TaskQuery,
): Promise<readonly ChosenSummary[]> {
  if (tables === null || summaries.length === 0) return summaries
  const ids = summaries.map(({ task }) => task.id)
  const having = await disk.tasksWithTables(ids, tables)
  const hasOthers = new Map(having.map((one) => [one.task, one.hasOthers]))
  return summaries.flatMap((summary) => {
    const hasOtherTables = hasOthers.get(summary.task.id)
    return hasOtherTables === undefined ? [] : [{ ...summary, hasOtherTables }]
  })
}

export async function readTasksById(source: ViewSource, ids: readonly number[]): Promise<TaskRow[]> {
  const summaries = new Map(
    (await source.disk.tasksWithLane(ids)).map((summary) => [summary.task.id, summary]),
  )
  const found = ids.flatMap((id) => {
    const summary = summaries.get(id)
    return summary === undefined || !exists(summary.task) ? [] : [summary]
  })
  return rowsOf(source, found, LEASES_READ_FOR_LISTS)
}

async function rowsOf(
  source: ViewSource,
  found: readonly ChosenSummary[],
  leasesRead: number,
): Promise<TaskRow[]> {
  const timing = await readTiming(source, found, leasesRead)
  return found.map((summary) => taskRow(summary, timing, source))
}

type TimingOf = (task: StoredTask) => Timing

const byEnd = (a: LeasedOrDelayed, b: LeasedOrDelayed): number =>
  a.dueAt - b.dueAt || a.level - b.level || a.index - b.index

/** Reads the back-offs of all these tasks with one query, or none if there are none. Leases are in memory. */
async function readTiming(
  { disk, memory, policy, now }: ViewSource,
  summaries: readonly TaskWithLane[],
  limit: number,
): Promise<TimingOf> {
  // Before the read: what is leased meanwhile would be there twice.
  const leased = memory.leases.firstToEnd(limit)
  const isDelayed = summaries.some(({ task }) => task.partitions.delayed > 0)
  const { due: delayed } = isDelayed ? await disk.dueBackoffs(Number.POSITIVE_INFINITY, limit) : { due: [] }
  const byTask = Map.groupBy([...leased, ...delayed], ({ lane }) => memory.lanes.get(lane)?.task)
  return (task) => {
    const ofTask = policyOf(policy, task)
    const underWay = (partition: StoredPartition): LeasedOrDelayed => {
      const { id, lane, index, spelling, holder, recordCount } = partition
      const isLeased = partition.state === 'leased'
      const [leasedAt, dueAt] = [partition.leasedAt ?? 0, partition.dueAt ?? 0]
      const millis = leaseMillis(ofTask, recordCount)
      return {
        level: memory.lanes.get(lane)?.level ?? 0,
        index,
        spelling,
        state: isLeased ? 'leased' : 'delayed',
        holder,
        leasedAt,
        dueAt,
        recordCount,
        renewed: dueAt - leasedAt > millis + RENEWAL_MILLIS,
        unheardShare: isLeased ? Math.max(0, 1 - (dueAt - now) / millis) : 0,
        progress: isLeased ? (memory.partitions.get(id)?.progress ?? null) : null,
      }
    }
    return {
      durations: task.durations,
      // The mean of the jittered back-off.
      backoffMillis: backoffMillis(ofTask, 1, 0.5),
      underWay: (byTask.get(task.id) ?? []).map(underWay).toSorted(byEnd),
    }
  }
}

function taskRow(summary: ChosenSummary, timingOf: TimingOf, { memory, now }: ViewSource): TaskRow {
  const { task, openLane, hasOtherTables } = summary
  const heldByTable = heldIn(memory, task.id)
  return {
    facts: { ...task, ...progressView({ facts: task, openLane, heldByTable }) },
    openLane,
    pace: memory.tasks.get(task.id)?.pace?.seen(now) ?? null,
    reason: mainReason(task.failures ?? []),
    timing: timingOf(task),
    heldByTable,
    hasOtherTables,
  }
}

/** With the counts of its row, which `laneView` converts. */
function laneFacts(
  { lane, ranges, lastIndex }: TaskDetail['lanes'][number],
  heldByTable: Amount | undefined,
): LaneFacts {
  const { purged: _purged, purgedRecords: _purgedRecords, ...kept } = lane
  return { ...kept, firstIndex: ranges[0]?.first ?? 0, lastIndex, gaps: gapsBetween(ranges), heldByTable }
}

const DAY = 86_400_000

/** The default time range of a query. */
const USUAL_MILLIS: Readonly<Record<ThroughputStep, number>> = { minute: DAY, hour: 7 * DAY }

/** Returns the newest points. Incomplete steps are dropped, so that each one has all its levels. */
export async function readThroughput(
  { disk, now }: Pick<ViewSource, 'disk' | 'now'>,
  { taskId, step, from, to, byLevel }: ThroughputQuery,
): Promise<ThroughputHistory | null> {
  const [task] = taskId === null ? [] : await disk.tasksNamed([taskId])
  if (taskId !== null && (task === undefined || !exists(task))) return null
  const end = to ?? now
  const begin = beginOf(from ?? end - USUAL_MILLIS[step], STEP_MILLIS[step])
  const limit = MAX_THROUGHPUT_POINTS + 1
  // Includes a step that begins now.
  const before = to ?? now + 1
  const found = await disk.throughput({
    task: task?.id ?? ALL_TASKS,
    step,
    from: begin,
    to: before,
    byLevel,
    limit,
  })
  const rows = found.toReversed()
  const cutAt = rows.length === limit ? rows[0]?.at : undefined
  const whole = cutAt === undefined ? rows : rows.filter(({ at }) => at > cutAt)
  return {
    task: task === undefined ? null : { taskId: task.taskId, owners: task.owners },
    from: whole === rows ? begin : (whole[0]?.at ?? end),
    to: end,
    rows: whole,
  }
}
