import {
  MAX_LISTED_GAPS,
  MAX_LISTED_LEVELS,
  MAX_LISTED_MISMATCHES,
  MAX_LISTED_TABLES,
  MAX_PRODUCER_TASKS,
  throughputSteps,
} from '@baton/protocol'
import { earlier } from '../../handoff/clock.ts'
import type {
  ForgetThroughput,
  LaneDetail,
  LeasedOrDelayedRow,
  TaskDetail,
  TaskPageQuery,
  TaskSummary,
  TaskWithTables,
  ThroughputRowsQuery,
} from '../../handoff/disk.ts'
import type { Heartbeat } from '../../handoff/heartbeats.ts'
import { totalOf } from '../../handoff/rules/task.ts'
import type { StoredLane, StoredTask } from '../../handoff/stored.ts'
import { PACE_SECONDS_KEPT } from '../../handoff/views/eta.ts'
import {
  addTotals,
  type InstanceDetails,
  type InstanceQuery,
  type ProducedTaskDetails,
  type ThroughputRow,
} from '../../handoff/views/queries.ts'
import { copyLane, copyTask, type InstanceRow, type MemoryMedium } from './memory-medium.ts'

/** A task whose first call-back is not complete has no counted partition, and is not visible yet. */
const isThere = (task: StoredTask) => totalOf(task.partitions) > 0

export function taskDetailIn(medium: MemoryMedium, taskId: string): TaskDetail | null {
  const task = medium.tasks.get(medium.tasksByName.get(taskId) ?? 0)
  if (task === undefined || !isThere(task)) return null
  const lanes = medium.lanesOf.get(task.id) ?? []
  return {
    ...summaryOf(medium, task),
    lanes: lanes.slice(0, MAX_LISTED_LEVELS).map((lane) => laneDetail(medium, lane)),
    laneCount: lanes.length,
    computeTables: [...(medium.tables.get(task.id) ?? [])].slice(0, MAX_LISTED_TABLES),
    mismatches: task.mismatched === 0 ? [] : mismatchesOf(medium, lanes),
  }
}

export function taskPageIn(medium: MemoryMedium, { before, limit, which }: TaskPageQuery): TaskSummary[] {
  const isRequested = (task: StoredTask) => {
    if (which === 'all') return true
    return which === 'parked' ? task.partitions.parked > 0 && !task.cancelled : task.state === which.state
  }
  const tasks = [...medium.tasks.values()].filter(
    (task) => task.id < before && isThere(task) && isRequested(task),
  )
  tasks.sort((a, b) => b.id - a.id)
  return tasks.slice(0, limit).map((task) => summaryOf(medium, task))
}

export function taskSummariesIn(medium: MemoryMedium, ids: readonly number[]): TaskSummary[] {
  const tasks = ids.map((id) => medium.tasks.get(id)).filter((task) => task !== undefined)
  return tasks.filter(isThere).map((task) => summaryOf(medium, task))
}

export function tasksWithTablesIn(
  medium: MemoryMedium,
  ids: readonly number[],
  tables: readonly string[],
): TaskWithTables[] {
  return ids.flatMap((task) => {
    const names = [...(medium.tables.get(task) ?? [])]
    const others = names.filter((name) => !tables.includes(name))
    return others.length === names.length ? [] : [{ task, hasOthers: others.length > 0 }]
  })
}

export function leasedOrDelayedIn(medium: MemoryMedium, limit: number): LeasedOrDelayedRow[] {
  const rowsOf = (ids: ReadonlySet<number>) =>
    [...ids]
      .flatMap((id): LeasedOrDelayedRow[] => {
        const row = medium.partitions.rows.get(id)
        const lane = medium.lanes.get(row?.lane ?? -1)
        if (row === undefined || lane === undefined) return []
        const { index, spelling, state, holder, leasedAt, dueAt, recordCount } = row
        return [
          {
            task: lane.task,
            level: lane.level,
            index,
            spelling,
            state: state as LeasedOrDelayedRow['state'],
            holder,
            leasedAt: leasedAt ?? 0,
            dueAt: dueAt ?? 0,
            recordCount,
          },
        ]
      })
      .sort((a, b) => a.dueAt - b.dueAt)
      .slice(0, limit)
  return [...rowsOf(medium.partitions.leased), ...rowsOf(medium.partitions.delayed)]
}

function summaryOf(medium: MemoryMedium, task: StoredTask): TaskSummary {
  const openLane = medium.lanesOf.get(task.id)?.find(({ level }) => level === task.openLevel)
  const pace = [...(medium.pace.get(task.id)?.values() ?? [])].sort((a, b) => b.second - a.second)
  return {
    task: copyTask(task),
    openLane: openLane === undefined ? null : copyLane(openLane),
    pace: pace
      .slice(0, PACE_SECONDS_KEPT)
      .map(({ second, partitions, records }) => ({ second, partitions, records })),
  }
}

function laneDetail(medium: MemoryMedium, lane: StoredLane): LaneDetail {
  const ranges = medium.ranges.get(lane.id) ?? []
  return {
    lane: copyLane(lane),
    ranges: ranges.slice(0, MAX_LISTED_GAPS + 1).map((range) => ({ ...range })),
    lastIndex: ranges.at(-1)?.last ?? 0,
  }
}

function mismatchesOf(medium: MemoryMedium, lanes: readonly StoredLane[]): TaskDetail['mismatches'] {
  const found: TaskDetail['mismatches'][number][] = []
  for (const { id: lane, level } of lanes) {
    const ofLane: typeof found = []
    for (const id of medium.partitions.ofLane(lane).ids) {
      const row = medium.partitions.rows.get(id)
      if (row === undefined || row.reportedRecords === null || row.reportedRecords === row.recordCount)
        continue
      const { index, spelling, recordCount, reportedRecords } = row
      ofLane.push({ level, index, spelling, declared: recordCount, reported: reportedRecords })
    }
    found.push(...ofLane.sort((a, b) => a.index - b.index))
    if (found.length >= MAX_LISTED_MISMATCHES) break
  }
  return found.slice(0, MAX_LISTED_MISMATCHES)
}

export function recordInstancesIn(medium: MemoryMedium, heartbeats: readonly Heartbeat[], now: number): void {
  for (const { instanceId, role, totals, seenMillisAgo, node } of heartbeats) {
    const lastSeenAt = now - seenMillisAgo.last
    const known = medium.instances.get(instanceId)
    if (known === undefined) {
      const firstSeenAt = now - seenMillisAgo.first
      medium.instances.set(instanceId, {
        instanceId,
        role,
        firstSeenAt,
        lastSeenAt,
        totals: { ...totals },
        node,
      })
      continue
    }
    const summed = { ...known.totals }
    addTotals(summed, totals)
    // A client that uses the name of a node does not replace the node's record.
    if (node === null && known.node !== null) medium.instances.set(instanceId, { ...known, totals: summed })
    else
      medium.instances.set(instanceId, {
        ...known,
        role,
        // The time never goes back, except from the future to now after the clock was set back.
        lastSeenAt: Math.max(lastSeenAt, Math.min(known.lastSeenAt, now)),
        totals: summed,
        node: node === null ? null : { ...node },
      })
  }
}

export function instanceIn(medium: MemoryMedium, instanceId: string, now: number): InstanceDetails | null {
  const row = medium.instances.get(instanceId)
  if (row === undefined) return null
  return { ...instanceRecord(medium, row, now), tasks: producedBy(medium, instanceId) }
}

export function instancesIn(
  medium: MemoryMedium,
  { after, limit, names }: InstanceQuery,
  now: number,
): InstanceDetails[] {
  const found = [...(names ?? medium.instances.keys())]
    .filter((name) => after === null || name > after)
    .sort()
  const rows = found.slice(0, limit).flatMap((name) => medium.instances.get(name) ?? [])
  return rows.map((row) => instanceRecord(medium, row, now))
}

export function activeInstancesIn(medium: MemoryMedium, since: number, limit: number): string[] {
  const holders = new Set([...medium.partitions.leased].map((id) => medium.partitions.rows.get(id)?.holder))
  return [...medium.instances.values()]
    .filter(({ instanceId, lastSeenAt }) => lastSeenAt >= since || holders.has(instanceId))
    .slice(0, limit)
    .map(({ instanceId }) => instanceId)
}

function instanceRecord(medium: MemoryMedium, row: InstanceRow, now: number): InstanceDetails {
  const isOver = (lane: number) => medium.tasks.get(medium.lanes.get(lane)?.task ?? 0)?.cancelled === true
  const leases = leasesOf(medium, row.instanceId).filter(
    ({ dueAt, lane }) => (dueAt ?? 0) > now && !isOver(lane),
  )
  return {
    ...row,
    totals: { ...row.totals },
    leases: leases.length,
    leasesEndAt: leases.reduce<number | null>((least, { dueAt }) => earlier(least, dueAt), null),
    now,
  }
}

function leasesOf(medium: MemoryMedium, instanceId: string) {
  const rows = [...medium.partitions.leased].map((id) => medium.partitions.rows.get(id))
  return rows.filter((row) => row !== undefined).filter(({ holder }) => holder === instanceId)
}

export function heldByIn(medium: MemoryMedium, instanceId: string, limit: number): number[] {
  const held = leasesOf(medium, instanceId).sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0))
  return held.slice(0, limit).map(({ id }) => id)
}

function producedBy(medium: MemoryMedium, instanceId: string): ProducedTaskDetails[] {
  const produced = [...(medium.produced.get(instanceId) ?? [])].sort((a, b) => b[1] - a[1])
  return produced.slice(0, MAX_PRODUCER_TASKS).flatMap(([id, lastCallBackAt]) => {
    const task = medium.tasks.get(id)
    if (task === undefined || !isThere(task)) return []
    const { taskId, state, partitions, records } = task
    return {
      taskId,
      state,
      lastCallBackAt,
      partitions: { total: totalOf(partitions), done: partitions.done },
      records: { total: totalOf(records), done: records.done },
    }
  })
}

export function forgetInstancesIn(
  medium: MemoryMedium,
  unseenSince: number,
  endedSince: number,
  limit: number,
): number {
  let forgotten = 0
  for (const { instanceId, lastSeenAt, node } of medium.instances.values()) {
    if (forgotten === limit) break
    const isGone = lastSeenAt < unseenSince || (node?.draining === true && lastSeenAt < endedSince)
    // A client that holds a lease is kept, however long it has been silent.
    if (!isGone || leasesOf(medium, instanceId).length > 0) continue
    medium.instances.delete(instanceId)
    medium.produced.delete(instanceId)
    forgotten += 1
  }
  return forgotten
}

export function throughputIn(medium: MemoryMedium, query: ThroughputRowsQuery): ThroughputRow[] {
  const { task, step, from, to, byLevel, limit } = query
  const found = [...medium.throughput.values()]
    .filter((row) => row.task === task && row.step === step && row.at >= from && row.at < to)
    .sort((a, b) => b.at - a.at || b.level - a.level)
  const rows = new Map<string, ThroughputRow>()
  for (const { at, level, partitions, records } of found) {
    const key = byLevel ? `${at}:${level}` : `${at}`
    const before = rows.get(key)
    rows.set(key, {
      at,
      level: byLevel ? level : null,
      partitions: partitions + (before?.partitions ?? 0),
      records: Math.min(records + (before?.records ?? 0), Number.MAX_SAFE_INTEGER),
    })
  }
  return [...rows.values()].slice(0, limit)
}

export function forgetThroughputIn(medium: MemoryMedium, { before, most, limit }: ForgetThroughput): number {
  const gone = throughputSteps.flatMap((step) => {
    const rows = [...medium.throughput].filter(([, row]) => row.step === step)
    rows.sort(([, a], [, b]) => a.at - b.at)
    const beyond = most === null ? -1 : (rows.at(-most - 1)?.[1].at ?? -1)
    return rows.filter(([, { at }]) => at < before[step] || at <= beyond).slice(0, limit)
  })
  for (const [key] of gone.slice(0, limit)) medium.throughput.delete(key)
  return Math.min(gone.length, limit)
}
