import type { Scale, ScaleLimit } from '@baton/protocol'
import { unfinishedOf } from '../rules/task.ts'
import { SETTLES_FOR_ETA, type TaskDemand } from '../views/eta.ts'
import { type Effort, leasesToFinishIn } from '../views/time-left.ts'
import type { ViewedCounts } from '../views/view-state.ts'
import type { Backlog, Fleet } from './store-readings.ts'

/** How many workers finish the backlog in time. `isPart`: it covers only some tasks or tables. */
export function scaleOf(backlog: Backlog, fleet: Fleet, targetSeconds: number, isPart: boolean): Scale {
  const { demands, tasks } = backlog
  const workers = workersOf(backlog, fleet, isPart)
  const open = demands.filter(({ left }) => left.partitions > 0)
  const runsOn = demands.reduce((sum, demand) => sum + demand.runsOn, 0)
  const efforts = effortsOf(open, workers.busy + workers.idle)
  const need = efforts === null ? null : needOf(efforts, targetSeconds * 1000)
  const estimated = need === null ? null : inWorkers(need.leases + runsOn, workers.leasesPerWorker)
  return {
    targetSeconds,
    desiredWorkers: Math.max(open.length === 0 ? 0 : 1, estimated ?? workers.busy),
    estimatedWorkers: estimated,
    reason: open.length === 0 ? 'no-backlog' : estimated === null ? 'no-pace' : 'pace',
    limitedBy: need?.limitedBy ?? null,
    workSeconds:
      efforts === null ? null : rounded(efforts.reduce((sum, { millis }) => sum + millis, 0) / 1000),
    backlog: { partitions: leftIn(backlog.partitions), records: leftIn(backlog.records) },
    workers: { ...workers, leasesPerWorker: rounded(workers.leasesPerWorker) },
    pace: paceOf(demands),
    tasks: { ...tasks, withOtherTables: backlog.tasksWithOtherTables },
    complete: backlog.isComplete && fleet.isComplete,
  }
}

function leftIn(counts: ViewedCounts): Scale['backlog']['partitions'] {
  const { ready, held, leased, delayed, parked } = counts
  return { left: unfinishedOf(counts) - parked, ready, held, leased, delayed, parked }
}

type Workers = Scale['workers']

/** A lease without a holder name counts as one worker, because it is unknown which leases belong together. */
function workersOf({ demands, partitions }: Backlog, fleet: Fleet, isPart: boolean): Workers {
  const { holders, lost, idle } = fleet
  if (!isPart) {
    const named = sum(holders.values())
    const unnamed = Math.max(0, partitions.leased - named - sum(lost.values()))
    return shown({ busy: holders.size + unnamed, elsewhere: 0, idle, lost: lost.size }, named + unnamed)
  }
  const seen = demands.flatMap((demand) => demand.holders)
  const live = seen.filter((holder) => holder === null || !lost.has(holder))
  const named = new Set(live.filter((holder) => holder !== null))
  const unnamed = live.length - live.filter((holder) => holder !== null).length
  // If there are very many leases, only some were read. Extrapolate.
  const unseen = partitions.leased / Math.max(1, seen.length)
  const busy = Math.round((named.size + unnamed) * Math.max(1, unseen))
  const elsewhere = Math.max(0, holders.size - Math.round(named.size * Math.max(1, unseen)))
  const lostHere = new Set(seen.filter((holder) => holder !== null && lost.has(holder)))
  return shown({ busy, elsewhere, idle, lost: lostHere.size }, live.length * Math.max(1, unseen))
}

const shown = (counts: Omit<Workers, 'leasesPerWorker'>, leases: number): Workers => ({
  ...counts,
  leasesPerWorker: counts.busy === 0 ? 1 : Math.max(1, leases / counts.busy),
})

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((all, one) => all + one, 0)

type KnownEffort = Pick<Effort, 'millis' | 'attemptMillis'> & Pick<TaskDemand, 'most' | 'limitedBy'>

/** One with too few attempts costs as much per record as the others. Null if none has enough. */
function effortsOf(open: readonly TaskDemand[], workers: number): readonly KnownEffort[] | null {
  if (open.length === 0) return []
  const known = open.filter(({ effort }) => effort !== null)
  if (known.length === 0) return effortsByPace(open, workers)
  const total = { millis: 0, partitions: 0, records: 0 }
  for (const { effort, left } of known) {
    total.millis += effort?.millis ?? 0
    total.partitions += left.partitions
    total.records += left.records
  }
  return open.map(({ effort, left, most, limitedBy }) => {
    if (effort !== null) return { ...effort, most, limitedBy }
    const byRecords = total.records > 0 && left.records > 0
    const share = byRecords ? left.records / total.records : left.partitions / total.partitions
    const millis = total.millis * share
    return { millis, attemptMillis: millis / left.partitions, most, limitedBy }
  })
}

/** At most once there are no attempts to measure, only the throughput of all workers. */
function effortsByPace(open: readonly TaskDemand[], workers: number): readonly KnownEffort[] | null {
  const paced = open.flatMap(({ seen }) => (seen === null ? [] : [seen]))
  if (paced.reduce((sum, { partitions }) => sum + partitions, 0) < SETTLES_FOR_ETA) return null
  const perSecond = paced.reduce((sum, { partitions, seconds }) => sum + partitions / seconds, 0)
  const workerMillis = (Math.max(1, workers) * 1000) / perSecond
  return open.map(({ left, most, limitedBy }) => {
    return { millis: left.partitions * workerMillis, attemptMillis: workerMillis, most, limitedBy }
  })
}

function needOf(
  efforts: readonly KnownEffort[],
  withinMillis: number,
): { leases: number; limitedBy: ScaleLimit | null } {
  let leases = 0
  let limit: ScaleLimit | null = null
  for (const { most, limitedBy, ...effort } of efforts) {
    const wanted = leasesToFinishIn(effort, withinMillis)
    leases += Math.min(wanted, most)
    // A fraction of a lease does not count. maxLeases is reported first, because an operator can change it.
    if (Math.ceil(wanted) > most && limit !== 'max-leases') limit = limitedBy
  }
  return { leases, limitedBy: limit }
}

/** The tolerance compensates for floating-point errors. */
const inWorkers = (leases: number, perWorker: number): number => Math.ceil(leases / perWorker - 1e-6)

function paceOf(demands: readonly TaskDemand[]): Scale['pace'] {
  const paced = demands.flatMap(({ seen }) => (seen === null ? [] : [seen]))
  if (paced.length === 0) return { partitionsPerSecond: null, recordsPerSecond: null }
  const perSecond = (unit: 'partitions' | 'records') =>
    rounded(paced.reduce((sum, seen) => sum + seen[unit] / seen.seconds, 0))
  return { partitionsPerSecond: perSecond('partitions'), recordsPerSecond: perSecond('records') }
}

const rounded = (value: number): number => Number(value.toPrecision(4))
