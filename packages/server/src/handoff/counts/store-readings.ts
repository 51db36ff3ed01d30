import { type UnfinishedTaskState, unfinishedTaskStates } from '@baton/protocol'
import { withTimeout } from '../clock.ts'
import type { InstanceRegister } from '../instance-register.ts'
import { partitionStates } from '../rules/life-cycle.ts'
import { addCapped } from '../rules/task-facts.ts'
import { type Store, StoreUnavailable } from '../store.ts'
import { demandOf, type TaskDemand } from '../views/demand.ts'
import type { TaskPage, TaskQuery } from '../views/records.ts'
import { progressView, type ViewedCounts } from '../views/view-state.ts'
import { type Fleet, readFleet } from './fleet.ts'

/** What is left to do in the whole store, whichever node was given it. Finished tasks are kept for good, and not counted. */
export interface Backlog {
  readonly tasks: Record<UnfinishedTaskState, number>
  /** How many of these tasks have partitions that wait for an operator. */
  readonly tasksWithParked: number
  /** All partitions of these tasks, those that are done among them. */
  readonly partitions: ViewedCounts
  readonly records: ViewedCounts
  readonly demands: readonly TaskDemand[]
  /** Where tables were asked for: how many of these tasks have others, too. They count as a whole. */
  readonly tasksWithOtherTables: number
  /** False: there are more tasks than were looked at; paused ones are left out first, and of each state the oldest. */
  readonly isComplete: boolean
}

/** Whose backlog it is; absent: that of all unfinished tasks. */
type Choice = Pick<TaskQuery, 'tables' | 'tasks'>

/** On the embedded store a page of so many holds the event loop for about two milliseconds. */
const TASKS_PER_PAGE = 100
/** 18 µs each on the embedded store: a tenth of a second in all, in short steps. */
export const MOST_TASKS = 5000

const counted = [...partitionStates, 'total'] as const

const none = () => Object.fromEntries(counted.map((one) => [one, 0])) as Record<keyof ViewedCounts, number>

interface ReadingOptions {
  readonly most?: number
  readonly perPage?: number
  readonly choice?: Choice
}

/**
 * Adds up what each task counts of itself, and a task is bounded by what a number can tell exactly; many of them together
 * are not. It costs more with more tasks under way, not with larger ones.
 */
export async function readBacklog(
  store: Pick<Store, 'tasks'>,
  { most = MOST_TASKS, perPage = TASKS_PER_PAGE, choice = {} }: ReadingOptions = {},
): Promise<Backlog> {
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
        ...choice,
        state,
        parked: false,
        before,
        limit,
        search: null,
      })
      if (left === 0 && page.tasks.length > 0) return sum(false)
      for (const row of page.tasks) {
        const shown = progressView(row)
        for (const one of counted) {
          partitions[one] = addCapped(partitions[one], shown.partitions[one])
          records[one] = addCapped(records[one], shown.records[one])
        }
        if (shown.partitions.parked > 0) tasksWithParked += 1
        if (row.hasOtherTables === true) tasksWithOtherTables += 1
        demands.push(demandOf(row, page.now))
      }
      tasks[state] += page.tasks.length
      left -= page.tasks.length
      before = page.next
    } while (before !== null)
  }
  return sum(true)
}

export interface StoreReading {
  /** It has just committed something. */
  readonly canCommit: boolean
  /** Null while the store cannot be read. */
  readonly backlog: Backlog | null
  readonly fleet: Fleet | null
}

const AWAY: StoreReading = { canCommit: false, backlog: null, fleet: null }

type ReadStore = Pick<Store, 'probe' | 'tasks'> & Pick<InstanceRegister, 'instances'>

/** Whoever asks has a time limit of its own, ten seconds by custom, and wants to know the rest in any case. */
const PATIENCE_MILLIS = 2000
/** A reading is used again for this many times as long as it took: however often somebody asks, looking stays a small part. */
const KEPT_TIMES = 20
const KEPT_MOST_MILLIS = 10_000

/** How the store is, for those who look from time to time. Those who look at the same time share a reading. */
export class StoreReadings {
  readonly #store: ReadStore
  readonly #failed: (error: unknown) => void
  #reading: Promise<StoreReading> | undefined
  #keptUntil = 0

  constructor(store: ReadStore, failed: (error: unknown) => void) {
    this.#store = store
    this.#failed = failed
  }

  /** Never rejects, and never takes much longer than its patience: a store that does not answer is away. */
  read(): Promise<StoreReading> {
    if (this.#reading === undefined || performance.now() >= this.#keptUntil) {
      this.#keptUntil = Number.POSITIVE_INFINITY
      this.#reading = this.#look()
    }
    return withTimeout(this.#reading, PATIENCE_MILLIS, () => AWAY)
  }

  /** For whoever wants to know nothing else. */
  async backlog(): Promise<Backlog> {
    const { backlog } = await this.read()
    if (backlog !== null) return backlog
    throw unreadable()
  }

  /** What there is to do, and for whom: all of it from the shared reading, a part of it from one of its own. */
  async workload(choice: Choice | null): Promise<{ backlog: Backlog; fleet: Fleet }> {
    if (choice !== null) {
      const [backlog, fleet] = await Promise.all([readBacklog(this.#store, { choice }), this.#fleet()])
      return { backlog, fleet }
    }
    const { backlog, fleet } = await this.read()
    if (backlog !== null && fleet !== null) return { backlog, fleet }
    throw unreadable()
  }

  #fleet(): Promise<Fleet> {
    return readFleet((query) => this.#store.instances(query))
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
