import { partitionStates } from '../handoff/rules/life-cycle.ts'
import { holdsBarrier, noTallies, type Tallies, type Tally, taskState } from '../handoff/rules/task.ts'
import type { StoredLane, StoredLaneTable, StoredTask } from '../handoff/stored.ts'

/** What the rows of a lane add up to. */
export interface Recount extends Tallies {
  readonly lane: StoredLane
  readonly task: StoredTask
  readonly waiting: WaitingCount
  /** By the key of the failure. */
  readonly parked: Map<string | null, { partitions: number; records: number }>
  /** Of a lane that has several. */
  readonly tables: readonly RecountedTable[]
}

/** How many rows that count are waiting. */
interface WaitingCount {
  fresh: number
  returned: number
}

export interface RecountedTable {
  readonly row: StoredLaneTable
  readonly waiting: WaitingCount
}

/** Lists where counters or barriers disagree with the rows. */
export function checkRecount(counted: readonly Recount[]): string[] {
  const byTask = [...Map.groupBy(counted, ({ task }) => task.id).values()]
  return [
    ...counted.flatMap(checkLane),
    ...byTask.flatMap(checkTask),
    ...counted.flatMap(checkWaiting),
    ...counted.flatMap(checkTables),
    ...byTask.flatMap(checkParked),
    ...byTask.flatMap(checkBarrier),
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
function checkParked(lanes: readonly Recount[]): string[] {
  const groups = lanes[0]?.task.failures ?? []
  const found = lanes.flatMap(({ parked }) => [...parked])
  const keys = new Set([...groups.map(({ key }) => key), ...found.map(([key]) => key)])
  return [...keys].flatMap((key) => {
    const name = `reason ${key} of task ${lanes[0]?.task.taskId}`
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

function checkBarrier(lanes: readonly Recount[]): string[] {
  const task = lanes[0]?.task
  if (task?.levelBarrier !== true || task.cancelled) return []
  const levels = lanes.flatMap(({ lane }) => (holdsBarrier(lane) ? [lane.level] : []))
  const lowest = levels.length === 0 ? null : levels.reduce((a, b) => Math.min(a, b))
  if (task.openLevel === lowest) return []
  return [`the barrier of task ${task.taskId} is open up to ${task.openLevel}, but ${lowest} is unfinished`]
}

/** Purged rows are deleted but were finished. Only they may account for a difference. */
function checkLane({ lane, task, partitions, records }: Recount): string[] {
  const name = laneName(task, lane.level)
  const finished = ({ done, cancelled }: Tally) => done + cancelled
  const expect = (what: string, has: number, rows: number, gone: number) =>
    has === rows + gone ? [] : [`${name} counts ${has} ${what}, but its rows have ${rows} + ${gone} purged`]
  const counted = { partitions, records }
  const hasAll = lane.purged === 0
  return [
    ...expect('finished', finished(lane.partitions), finished(partitions), lane.purged),
    ...expect('records finished', finished(lane.records), finished(records), lane.purgedRecords),
    ...compare(name, hasAll ? lane : unfinished(lane), hasAll ? counted : unfinished(counted)),
  ]
}

function checkTask(lanes: readonly Recount[]): string[] {
  const task = lanes[0]?.task
  if (task === undefined) return []
  const kept = lanes.map(({ lane }) => lane)
  const open = kept.find(({ level }) => level === task.openLevel) ?? null
  const state = taskState(task, open)
  const name = `task ${task.taskId}`
  return [
    ...compare(name, task, kept.reduce<Tallies>(add, noTallies())),
    ...(task.state === state ? [] : [`${name} is marked ${task.state}, but is ${state}`]),
  ]
}

const unfinished = ({ partitions, records }: Tallies): Tallies => ({
  partitions: { ...partitions, done: 0, cancelled: 0 },
  records: { ...records, done: 0, cancelled: 0 },
})

const compare = (name: string, kept: Tallies, counted: Tallies): string[] =>
  partitionStates.flatMap((state) => [
    ...differing(name, state, kept.partitions[state], counted.partitions[state]),
    ...differing(name, `records ${state}`, kept.records[state], counted.records[state]),
  ])

const differing = (name: string, what: string, has: number, rows: number): string[] =>
  has === rows ? [] : [`${name} counts ${has} ${what}, but its rows have ${rows}`]

function add(a: Tallies, b: Tallies): Tallies {
  const sum = noTallies()
  for (const state of partitionStates) {
    sum.partitions[state] = a.partitions[state] + b.partitions[state]
    sum.records[state] = a.records[state] + b.records[state]
  }
  return sum
}
