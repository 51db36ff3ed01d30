import type { StateCounts, TaskSummary, Totals } from '@baton/protocol'
import { isUnfinishedState } from '@baton/protocol/core'
import { computed, effect, signal } from '@preact/signals'
import { client, noteRefusal } from './connection.ts'
import { followLive, liveState, now } from './live.ts'
import { unfinishedBeyond, unfinishedTasks } from './tasks.ts'
import { recentPace } from './throughput.ts'

/** The service caches the sums for all clients, so this interval may be short. */
const REFRESH_MILLIS = 2000

/**
 * The service's sums over all unfinished tasks. Requested only if the page has not loaded all of these tasks,
 * because the sums of loaded tasks are more recent. Null if not requested or not received yet.
 */
const serviceTotals = signal<Totals | null>(null)

let reading = false

export function followTotals(): void {
  effect(() => {
    if (unfinishedBeyond.value) void read()
    else serviceTotals.value = null
  })
  followLive({ reload: () => void read() })
  setInterval(() => {
    if (document.visibilityState === 'visible' && liveState.peek() === 'live') void read()
  }, REFRESH_MILLIS)
}

async function read(): Promise<void> {
  if (reading || !unfinishedBeyond.peek()) return
  reading = true
  try {
    serviceTotals.value = await client.peek().totals()
  } catch (error) {
    // The previous sums are still approximately right. The header shows whether the page is up to date.
    noteRefusal(error)
  } finally {
    reading = false
  }
}

interface Sums {
  readonly records: number
  readonly recordsLeft: number
  readonly partitionsLeft: number
  readonly leasedRecords: number
  readonly leased: number
  readonly parked: number
  readonly open: number
  readonly stalled: number
  readonly paused: number
  /** Tasks with parked partitions. */
  readonly withParked: number
}

const leftOf = (counts: StateCounts) => counts.total - counts.done - counts.cancelled

/** The sums over all unfinished tasks. If `isExact` is false, each number is a lower bound. */
export const totals = computed((): Sums & { readonly isExact: boolean } => {
  const seen = sumsOf(unfinishedTasks.value)
  if (!unfinishedBeyond.value) return { ...seen, isExact: true }
  const received = serviceTotals.value
  if (received === null) return { ...seen, isExact: false }
  const sums = sumsOfTotals(received)
  return received.complete ? { ...sums, isExact: true } : { ...largerOf(seen, sums), isExact: false }
})

/** The number of unfinished tasks, including those that are not loaded. */
export const unfinishedCount = computed(() => {
  const { open, stalled, paused } = totals.value
  return open + stalled + paused
})

function sumsOf(tasks: readonly TaskSummary[]): Sums {
  const sum = {
    records: 0,
    recordsLeft: 0,
    partitionsLeft: 0,
    leasedRecords: 0,
    leased: 0,
    parked: 0,
    open: 0,
    stalled: 0,
    paused: 0,
    withParked: 0,
  }
  for (const { state, records, partitions } of tasks) {
    sum.records += records.total
    sum.recordsLeft += leftOf(records)
    sum.partitionsLeft += leftOf(partitions)
    sum.leasedRecords += records.leased
    sum.leased += partitions.leased
    sum.parked += partitions.parked
    if (isUnfinishedState(state)) sum[state] += 1
    if (partitions.parked > 0) sum.withParked += 1
  }
  return sum
}

function sumsOfTotals({ tasks, partitions, records }: Totals): Sums {
  return {
    ...tasks,
    records: records.total,
    recordsLeft: leftOf(records),
    partitionsLeft: leftOf(partitions),
    leasedRecords: records.leased,
    leased: partitions.leased,
    parked: partitions.parked,
  }
}

function largerOf(a: Sums, b: Sums): Sums {
  const names = Object.keys(a) as (keyof Sums)[]
  return Object.fromEntries(names.map((name) => [name, Math.max(a[name], b[name])])) as unknown as Sums
}

/**
 * The current records per second, as observed by the page. The service's value for each task is a mean over
 * at least a minute, which stays high after a task has stopped.
 */
export const pace = computed(() => recentPace(now.value))

/** When the last running task will be done, as far as the service knows. */
export const longestEta = computed(() => {
  const running = unfinishedTasks.value.filter(({ state }) => state === 'open')
  const known = running.map(({ etaSeconds }) => etaSeconds).filter((eta) => eta !== null)
  const isWhole = known.length === running.length && running.length >= totals.value.open
  return running.length > 0 && isWhole && totals.value.isExact ? Math.max(...known) : null
})
