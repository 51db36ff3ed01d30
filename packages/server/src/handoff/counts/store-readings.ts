import { type UnfinishedTaskState, unfinishedTaskStates } from '@baton/protocol'
import { withTimeout } from '../clock.ts'
import { CLIENT_FRESH_MILLIS, statusOf } from '../instance-status.ts'
import { partitionStates } from '../rules/life-cycle.ts'
import { addCapped } from '../rules/task.ts'
import { type Store, StoreUnavailable } from '../store.ts'
import { demandOf, type TaskDemand } from '../views/eta.ts'
import type { TaskPage, TaskQuery } from '../views/queries.ts'
import { progressView, type ViewedCounts } from '../views/view-state.ts'

/** The unfinished work, whichever node received it. Finished tasks are left out: they stay forever. */
export interface Backlog {
  readonly tasks: Record<UnfinishedTaskState, number>
  readonly tasksWithParked: number
  /** All partitions of these tasks, including done ones. */
  readonly partitions: ViewedCounts
  readonly records: ViewedCounts
  readonly demands: readonly TaskDemand[]
  /** If the query names tables: how many of these tasks have others. All their partitions are counted. */
  readonly tasksWithOtherTables: number
  /** False if more tasks were there than were read. Paused and old ones are left out first. */
  readonly isComplete: boolean
}

/** Restricts the backlog. If absent, all unfinished tasks are included. */
type BacklogFilter = Pick<TaskQuery, 'tables' | 'tasks'> & {
  /** Prefixes of task ids; null for any. */
  readonly prefixes?: readonly string[] | null
}

/** Small pages, because the embedded store reads a page synchronously and blocks the event loop. */
const TASKS_PER_PAGE = 100
/** Bounds the total cost of a reading. */
export const MOST_TASKS = 5000

const counted = [...partitionStates, 'total'] as const

const none = () => Object.fromEntries(counted.map((one) => [one, 0])) as Record<keyof ViewedCounts, number>

interface ReadingOptions {
  readonly most?: number
  readonly perPage?: number
  readonly filter?: BacklogFilter
}

/** Adds up tasks. Capped: the records of one task fit into a safe integer, those of many may not. */
export async function readBacklog(
  store: Pick<Store, 'tasks'>,
  { most = MOST_TASKS, perPage = TASKS_PER_PAGE, filter = {} }: ReadingOptions = {},
): Promise<Backlog> {
  const { prefixes = null, ...named } = filter
  const isChosen = ({ facts: { taskId } }: TaskPage['tasks'][number]) =>
    prefixes === null || prefixes.some((prefix) => taskId.startsWith(prefix))
  const tasks = { stalled: 0, paused: 0, open: 0 }
  const partitions = none()
  const records = none()
  const demands: TaskDemand[] = []
  let tasksWithParked = 0
  let tasksWithOtherTables = 0
  let left = most
  const sum = (isComplete: boolean) => ({
    tasks,
    tasksWithParked,
    partitions,
    records,
    demands,
    tasksWithOtherTables,
    isComplete,
  })
  for (const state of unfinishedTaskStates) {
    let before: number | null = null
    do {
      const limit = Math.max(1, Math.min(left, perPage))
      const page: TaskPage = await store.tasks({
        ...named,
        state,
        parked: false,
        before,
        limit,
        search: null,
      })
      if (left === 0 && (page.tasks.length > 0 || page.next !== null)) return sum(false)
      const rows = page.tasks.filter(isChosen)
      for (const row of rows) {
        const shown = progressView(row)
        for (const one of counted) {
          partitions[one] = addCapped(partitions[one], shown.partitions[one])
          records[one] = addCapped(records[one], shown.records[one])
        }
        if (shown.partitions.parked > 0) tasksWithParked += 1
        if (row.hasOtherTables === true) tasksWithOtherTables += 1
        demands.push(demandOf(row, page.now))
      }
      tasks[state] += rows.length
      // If the query names tables or prefixes, the tasks that were read and do not match count too.
      left -= page.next === null ? page.tasks.length : limit
      before = page.next
    } while (before !== null)
  }
  return sum(true)
}

export interface StoreReading {
  /** Whether the store has just committed something. */
  readonly canCommit: boolean
  /** Null while the store cannot be read. */
  readonly backlog: Backlog | null
  readonly fleet: Fleet | null
}

const AWAY: StoreReading = { canCommit: false, backlog: null, fleet: null }

type ReadStore = Pick<Store, 'probe' | 'tasks' | 'instances' | 'activeInstances'>

/** Scrapers have a timeout, often of ten seconds, and need the other values all the same. */
const PATIENCE_MILLIS = 2000
/** A reading is cached for this many times its duration, so it takes a small share of the time. */
const KEPT_TIMES = 20
const KEPT_MOST_MILLIS = 10_000

/** Reads the state of the store for monitoring. Concurrent callers share a reading. */
export class StoreReadings {
  readonly #store: ReadStore
  readonly #failed: (error: unknown) => void
  #reading: Promise<StoreReading> | undefined
  #keptUntil = 0

  constructor(store: ReadStore, failed: (error: unknown) => void) {
    this.#store = store
    this.#failed = failed
  }

  /** Never rejects: a store that does not answer in time counts as unavailable. */
  read(): Promise<StoreReading> {
    if (this.#reading === undefined || performance.now() >= this.#keptUntil) {
      this.#keptUntil = Number.POSITIVE_INFINITY
      this.#reading = this.#look()
    }
    return withTimeout(this.#reading, PATIENCE_MILLIS, () => AWAY)
  }

  async backlog(): Promise<Backlog> {
    const { backlog } = await this.read()
    if (backlog !== null) return backlog
    throw unreadable()
  }

  /** Without a restriction from the shared reading; otherwise the store is read. */
  async workload(filter: BacklogFilter | null): Promise<{ backlog: Backlog; fleet: Fleet }> {
    if (filter !== null) {
      const [backlog, fleet] = await Promise.all([readBacklog(this.#store, { filter }), this.#fleet()])
      return { backlog, fleet }
    }
    const { backlog, fleet } = await this.read()
    if (backlog !== null && fleet !== null) return { backlog, fleet }
    throw unreadable()
  }

  #fleet(): Promise<Fleet> {
    return readFleet(this.#store)
  }

  async #look(): Promise<StoreReading> {
    const began = performance.now()
    const [probed, backlog, fleet] = await Promise.allSettled([
      this.#store.probe(),
      readBacklog(this.#store),
      this.#fleet(),
    ])
    const now = performance.now()
    this.#keptUntil = now + Math.min((now - began) * KEPT_TIMES, KEPT_MOST_MILLIS)
    for (const one of [probed, backlog, fleet]) {
      if (one.status === 'rejected' && !(one.reason instanceof StoreUnavailable)) this.#failed(one.reason)
    }
    return {
      canCommit: probed.status === 'fulfilled',
      backlog: backlog.status === 'fulfilled' ? backlog.value : null,
      fleet: fleet.status === 'fulfilled' ? fleet.value : null,
    }
  }
}

const unreadable = () =>
  new StoreUnavailable('store_unavailable', 'the tasks could not be added up: the store does not answer')

/** The workers, by whether they hold leases and were seen recently. */
export interface Fleet {
  /** Number of leases by holder, for workers that are not lost. */
  readonly holders: ReadonlyMap<string, number>
  /** The same for lost workers, which usually hold none. */
  readonly lost: ReadonlyMap<string, number>
  readonly idle: number
  /** False if there are more workers than were read. */
  readonly isComplete: boolean
}

/** Small, because the leases of each are looked up. Names are read once, which costs the same for all. */
const INSTANCES_PER_PAGE = 100
const MOST_WORKERS = 5000

export async function readFleet(
  store: Pick<Store, 'instances' | 'activeInstances'>,
  { most = MOST_WORKERS, perPage = INSTANCES_PER_PAGE } = {},
): Promise<Fleet> {
  const holders = new Map<string, number>()
  const lost = new Map<string, number>()
  let idle = 0
  const active = await store.activeInstances({ activeMillis: CLIENT_FRESH_MILLIS, limit: most + 1 })
  for (let at = 0; at < Math.min(active.length, most); at += perPage) {
    const names = active.slice(at, Math.min(at + perPage, most))
    const { instances } = await store.instances({ after: null, limit: perPage, names })
    for (const instance of instances) {
      const { instanceId, role, leases } = instance
      if (role === 'service') continue
      const status = statusOf(instance)
      if (status === 'lost') lost.set(instanceId, leases)
      else if (leases > 0) holders.set(instanceId, leases)
      // A producer never pulls.
      else if (role === 'worker' && status === 'up') idle += 1
    }
  }
  return { holders, lost, idle, isComplete: active.length <= most }
}
