import type { Disk, Recount } from '../../disk.ts'
import { partitionStates } from '../../rules/life-cycle.ts'
import {
  holdsBarrier,
  type MutableTask,
  noTallies,
  type Tallies,
  type Tally,
  taskState,
  withRerunning,
} from '../../rules/task.ts'
import type { StoredLane, StoredTask } from '../../stored.ts'

/** Recounts all rows and reports where counters or barriers disagree with them. */
export async function recount(disk: Disk): Promise<string[]> {
  return checkRecount(await disk.recount())
}

export function checkRecount(counted: readonly Recount[]): string[] {
  const lanes = counted.map(({ lane, task, partitions, records }): RecountedLane => {
    const { level, parkedSkipped, purged, purgedRecords } = lane
    return {
      name: laneName(task, level),
      task: task.id,
      level,
      parkedSkipped,
      kept: lane,
      counted: { partitions, records },
      purged,
      purgedRecords,
    }
  })
  const byTask = Map.groupBy(counted, ({ task }) => task.id)
  const tasks = [...byTask.values()].flatMap(([one]) => (one === undefined ? [] : [one.task]))
  return [
    ...checkCounters(lanes, tasks.map(withRerunning)),
    ...counted.flatMap(checkWaiting),
    ...counted.flatMap(checkTables),
    ...tasks.flatMap((task) => checkParked(task, byTask.get(task.id) ?? [])),
    ...tasks.flatMap((task) =>
      checkBarrier(
        task,
        (byTask.get(task.id) ?? []).map(({ lane }) => lane),
      ),
    ),
  ]
}

export const laneName = ({ taskId }: StoredTask, level: number): string => `level ${level} of task ${taskId}`

function checkWaiting({ lane, task, waiting }: Recount): string[] {
  const { level, returned, partitions } = lane
  const name = laneName(task, level)
  return [
    ...unequal(name, 'waiting that came back', returned, waiting.returned),
    ...unequal(name, 'waiting that did not come back', partitions.ready - returned, waiting.fresh),
  ]
}

/** A lane with a single table keeps no counts by table. */
function checkTables({ lane, task, tables }: Recount): string[] {
  return tables.flatMap(({ row, waiting }) => {
    const name = `table ${row.table} on ${laneName(task, lane.level)}`
    return [
      ...unequal(name, 'waiting', row.ready, waiting.fresh + waiting.returned),
      ...unequal(name, 'waiting that came back', row.returned, waiting.returned),
    ]
  })
}

/** What the groups of failures say is parked. */
function checkParked({ taskId, failures }: StoredTask, lanes: readonly Recount[]): string[] {
  const groups = failures ?? []
  const found = lanes.flatMap(({ parked }) => [...parked])
  const keys = new Set([...groups.map(({ key }) => key), ...found.map(([key]) => key)])
  return [...keys].flatMap((key) => {
    const name = `reason ${key} of task ${taskId}`
    const kept = groups.find((group) => group.key === key)?.parked
    const rows = found.filter(([other]) => other === key).map(([, count]) => count)
    const sum = (field: 'partitions' | 'records') => rows.reduce((all, row) => all + row[field], 0)
    return [
      ...unequal(name, 'parked', kept?.partitions ?? 0, sum('partitions')),
      ...unequal(name, 'records parked', kept?.records ?? 0, sum('records')),
    ]
  })
}

const unequal = (name: string, what: string, kept: number, found: number): string[] =>
  kept === found ? [] : [`${name} has ${kept} ${what}, but its rows have ${found}`]

function checkBarrier(task: StoredTask, lanes: readonly StoredLane[]): string[] {
  if (!task.levelBarrier || task.cancelled) return []
  const levels = lanes.filter(holdsBarrier).map(({ level }) => level)
  const lowest = levels.length === 0 ? null : levels.reduce((a, b) => Math.min(a, b))
  if (task.openLevel === lowest) return []
  return [`the barrier of task ${task.taskId} is open up to ${task.openLevel}, but ${lowest} is unfinished`]
}

interface RecountedLane {
  readonly name: string
  /** The id of its task. */
  readonly task: number
  readonly level: number
  readonly parkedSkipped: boolean
  readonly kept: Tallies
  /** Counted from the rows of its partitions. */
  readonly counted: Tallies
  readonly purged: number
  readonly purgedRecords: number
}

/**
 * Reports where lane counters disagree with the rows, and where task counters disagree with those of the
 * lanes.
 */
function checkCounters(lanes: readonly RecountedLane[], tasks: readonly MutableTask[]): string[] {
  const findings = lanes.flatMap(checkLane)
  const lanesOf = Map.groupBy(lanes, ({ task }) => task)
  for (const task of tasks) {
    const own = lanesOf.get(task.id) ?? []
    const kept = own.map((lane) => lane.kept)
    findings.push(...compare(`task ${task.taskId}`, task, kept.reduce(add, noTallies())))
    const open = own.find(({ level }) => level === task.openLevel)
    const state = taskState(task, open === undefined ? null : { ...open, ...open.kept })
    if (task.state !== state) findings.push(`task ${task.taskId} is marked ${task.state}, but is ${state}`)
  }
  return findings
}

/** Purged rows are deleted but were finished. Only they may account for a difference. */
function checkLane({ name, kept, counted, purged, purgedRecords }: RecountedLane): string[] {
  const finished = ({ done, cancelled }: Tally) => done + cancelled
  const findings: string[] = []
  const expect = (what: string, has: number, rows: number, gone: number) => {
    if (has !== rows + gone)
      findings.push(`${name} counts ${has} ${what}, but its rows have ${rows} + ${gone} purged`)
  }
  expect('finished', finished(kept.partitions), finished(counted.partitions), purged)
  expect('records finished', finished(kept.records), finished(counted.records), purgedRecords)
  if (purged > 0) return [...findings, ...compare(name, unfinished(kept), unfinished(counted))]
  return [...findings, ...compare(name, kept, counted)]
}

const unfinished = ({ partitions, records }: Tallies): Tallies => ({
  partitions: { ...partitions, done: 0, cancelled: 0 },
  records: { ...records, done: 0, cancelled: 0 },
})

function compare(name: string, kept: Tallies, counted: Tallies): string[] {
  return partitionStates.flatMap((state) => [
    ...(kept.partitions[state] === counted.partitions[state]
      ? []
      : [
          `${name} counts ${kept.partitions[state]} ${state}, but its rows have ${counted.partitions[state]}`,
        ]),
    ...(kept.records[state] === counted.records[state]
      ? []
      : [
          `${name} counts ${kept.records[state]} records ${state}, but its rows have ${counted.records[state]}`,
        ]),
  ])
}

function add(a: Tallies, b: Tallies): Tallies {
  const sum = noTallies()
  for (const state of partitionStates) {
    sum.partitions[state] = a.partitions[state] + b.partitions[state]
    sum.records[state] = a.records[state] + b.records[state]
  }
  return sum
}
