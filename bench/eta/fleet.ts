import { RecentPace } from '../../packages/server/src/handoff/engine/state/recent-pace.ts'
import { countDuration } from '../../packages/server/src/handoff/rules/durations.ts'
import type { Progress } from '../../packages/server/src/handoff/rules/progress.ts'
import { emptyTally, type TaskFacts } from '../../packages/server/src/handoff/rules/task.ts'
import type { TaskRow } from '../../packages/server/src/handoff/views/queries.ts'
import type { LeasedOrDelayed } from '../../packages/server/src/handoff/views/time-left.ts'

/**
 * Simulates a fleet of workers on one task in virtual time: what the service knows at any moment, and when
 * the task ends.
 */
export interface Fleet {
  readonly name: string
  readonly workers: number
  /** The record counts of the partitions, level by level. */
  readonly partitions: readonly number[]
  readonly leaseMillis: number
  readonly backoffMillis: number
  /** The duration of an attempt. */
  readonly attempt: (records: number, random: () => number) => number
  /** The share of attempts that fail. */
  readonly failing?: number
  /** The number of attempts after which each of these workers dies in the middle of one. */
  readonly dyingAfter?: readonly number[]
  /** Its workers report their progress this often. */
  readonly reportsEveryMillis?: number
}

export interface Look {
  readonly at: number
  readonly share: number
  readonly row: TaskRow
}

interface Lease {
  readonly partition: number
  readonly leasedAt: number
  dueAt: number
  readonly endsAt: number
  readonly end: 'done' | 'failed' | 'never'
  readonly worker: number
}

/** Returns a pseudo-random number in [0, 1); the sequence is the same in each run. */
export function chance(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const START = 1_780_000_000_000

/** Runs the fleet until the task is done and samples the task every `everyMillis`. */
export function run(fleet: Fleet, seed: number, everyMillis: number): { looks: Look[]; doneAt: number } {
  const random = chance(seed)
  const waiting = fleet.partitions.map((_, at) => at)
  const delayed: { partition: number; dueAt: number }[] = []
  const leases = new Map<number, Lease>()
  const alive = new Set(Array.from({ length: fleet.workers }, (_, at) => at))
  const attempts = new Array<number>(fleet.workers).fill(0)
  const failures = new Array<number>(fleet.partitions.length).fill(0)
  const durations: number[] = []
  const pace = new RecentPace(START)
  const looks: Look[] = []
  let [done, doneRecords, wasted] = [0, 0, 0]
  const total = fleet.partitions.reduce((sum, records) => sum + records, 0)
  let now = START
  let nextLook = START + everyMillis

  const hand = () => {
    for (const worker of alive) {
      if ([...leases.values()].some((lease) => lease.worker === worker)) continue
      const partition = waiting.shift()
      if (partition === undefined) return
      const takes = fleet.attempt(fleet.partitions[partition] ?? 0, random)
      attempts[worker] = (attempts[worker] ?? 0) + 1
      const dies = fleet.dyingAfter?.[worker] === attempts[worker]
      const fails = random() < (fleet.failing ?? 0)
      leases.set(partition, {
        partition,
        worker,
        leasedAt: now,
        dueAt: now + fleet.leaseMillis,
        endsAt: dies ? Number.POSITIVE_INFINITY : now + takes,
        end: dies ? 'never' : fails ? 'failed' : 'done',
      })
      if (dies) alive.delete(worker)
    }
  }
  const delay = (partition: number) => {
    failures[partition] = (failures[partition] ?? 0) + 1
    wasted += 1
    const full = fleet.backoffMillis * 2 ** Math.min((failures[partition] ?? 1) - 1, 6)
    delayed.push({ partition, dueAt: now + full * (0.5 + 0.5 * random()) })
  }
  const look = (at: number) => looks.push({ at, share: doneRecords / total, row: rowAt(at) })
  const rowAt = (at: number): TaskRow => {
    const [partitions, records] = [emptyTally(), emptyTally()]
    const count = (state: 'ready' | 'leased' | 'delayed', ids: Iterable<number>) => {
      for (const id of ids) {
        partitions[state] += 1
        records[state] += fleet.partitions[id] ?? 0
      }
    }
    count('ready', waiting)
    count('leased', leases.keys())
    count(
      'delayed',
      delayed.map(({ partition }) => partition),
    )
    partitions.done = done
    records.done = doneRecords
    const underWay: LeasedOrDelayed[] = [
      ...[...leases.values()].map((lease) => ({
        ...place(fleet, lease.partition),
        state: 'leased' as const,
        holder: `w${lease.worker}`,
        leasedAt: lease.leasedAt,
        dueAt: lease.dueAt,
        renewed: lease.dueAt - lease.leasedAt > fleet.leaseMillis + 500,
        unheardShare: Math.max(0, 1 - (lease.dueAt - at) / fleet.leaseMillis),
        progress: progressOf(fleet, lease, at),
      })),
      ...delayed.map(({ partition, dueAt }) => ({
        ...place(fleet, partition),
        state: 'delayed' as const,
        holder: null,
        leasedAt: at,
        dueAt,
        renewed: false,
        unheardShare: 0,
        progress: null,
      })),
    ]
    return {
      facts: {
        ...FACTS,
        firstCallBackAt: START,
        lastCallBackAt: START,
        attemptsWasted: wasted,
        partitions,
        records,
      },
      openLane: null,
      pace: pace.seen(at),
      timing: { durations: [...durations], underWay, backoffMillis: fleet.backoffMillis * 0.75 },
    }
  }

  hand()
  while (done < fleet.partitions.length) {
    const ends = [...leases.values()].map((lease) => Math.min(lease.endsAt, expiryOf(lease)))
    const next = Math.min(...ends, ...delayed.map(({ dueAt }) => dueAt))
    if (!Number.isFinite(next)) throw new Error(`${fleet.name}: no worker is left to finish the task`)
    while (nextLook < next) {
      renew(leases, fleet, nextLook)
      look(nextLook)
      nextLook += everyMillis
    }
    now = next
    renew(leases, fleet, now)
    for (const due of delayed.filter(({ dueAt }) => dueAt <= now)) {
      delayed.splice(delayed.indexOf(due), 1)
      waiting.unshift(due.partition)
    }
    for (const lease of [...leases.values()]) {
      if (lease.endsAt <= now) {
        leases.delete(lease.partition)
        if (lease.end === 'failed') delay(lease.partition)
        else {
          const records = fleet.partitions[lease.partition] ?? 0
          done += 1
          doneRecords += records
          countDuration(durations, now - lease.leasedAt)
          pace.add(now, records)
        }
      } else if (lease.dueAt <= now) {
        leases.delete(lease.partition)
        delay(lease.partition)
      }
    }
    hand()
  }
  return { looks, doneAt: now }
}

/** Dead workers do not renew their leases. */
const expiryOf = (lease: Lease): number => (lease.end === 'never' ? lease.dueAt : Number.POSITIVE_INFINITY)

/** A third of the lease after the last renewal, as in the client. */
function renew(leases: ReadonlyMap<number, Lease>, fleet: Fleet, now: number): void {
  const third = fleet.leaseMillis / 3
  for (const lease of leases.values()) {
    if (lease.end === 'never') continue
    const renewals = Math.floor((now - lease.leasedAt) / third)
    lease.dueAt = lease.leasedAt + renewals * third + fleet.leaseMillis
  }
}

/** A report renews the lease, and every attempt works at a constant pace. A dead worker reports nothing. */
function progressOf(
  { reportsEveryMillis, partitions }: Fleet,
  { partition, leasedAt, endsAt }: Lease,
  now: number,
): Progress | null {
  if (reportsEveryMillis === undefined || !Number.isFinite(endsAt)) return null
  const reports = Math.floor((now - leasedAt) / reportsEveryMillis)
  if (reports === 0) return null
  const recordsAt = (at: number) =>
    Math.floor(((partitions[partition] ?? 0) * (at - leasedAt)) / (endsAt - leasedAt))
  const [first, last] = [leasedAt + reportsEveryMillis, leasedAt + reports * reportsEveryMillis]
  return {
    records: recordsAt(last),
    note: null,
    at: last,
    first: { records: recordsAt(first), at: first },
  }
}

const place = (fleet: Fleet, partition: number) => ({
  level: 0,
  index: partition,
  spelling: null,
  recordCount: fleet.partitions[partition] ?? 0,
})

const FACTS: Omit<TaskFacts, 'partitions' | 'records' | 'firstCallBackAt' | 'lastCallBackAt'> = {
  taskId: 'simulated',
  paused: false,
  cancelled: false,
  sealed: false,
  reruns: [],
  expectedPartitions: null,
  levelBarrier: false,
  settings: null,
  openLevel: null,
  generation: 1,
  finishedAt: null,
  purgedAt: null,
  delivered: 0,
  attemptsWasted: 0,
  reportedDeclared: 0,
  reportedRecords: 0,
  mismatched: 0,
  owners: [],
}
