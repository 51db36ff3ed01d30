import { type UnfinishedTaskState, unfinishedTaskStates } from '@baton/protocol'
import { partitionStates } from '../rules/life-cycle.ts'
import { addCapped } from '../rules/tally.ts'
import { demandOf, type TaskDemand } from '../shown/demand.ts'
import { type ShownCounts, shownProgress } from '../shown/shown-state.ts'
import type { TaskPage, TaskQuery } from '../shown/task-record.ts'
import type { Store } from '../store.ts'

/** What is left to do in the whole store, whichever node was given it. Finished tasks are kept for good, and not counted. */
export interface Backlog {
  readonly tasks: Record<UnfinishedTaskState, number>
  /** How many of these tasks have partitions that wait for an operator. */
  readonly tasksWithParked: number
  /** All partitions of these tasks, those that are done among them. */
  readonly partitions: ShownCounts
  readonly records: ShownCounts
  readonly demands: readonly TaskDemand[]
  /** Where tables were asked for: how many of these tasks have others, too. They count as a whole. */
  readonly tasksWithOtherTables: number
  /** False: there are more tasks than were looked at; paused ones are left out first, and of each state the oldest. */
  readonly isComplete: boolean
}

/** Whose backlog it is; absent: that of all unfinished tasks. */
export type Choice = Pick<TaskQuery, 'tables' | 'tasks'>

/** On the embedded store a page of so many holds the event loop for about two milliseconds. */
const TASKS_PER_PAGE = 100
/** 18 µs each on the embedded store: a tenth of a second in all, in short steps. */
export const MOST_TASKS = 5000

const counted = [...partitionStates, 'total'] as const

const none = () => Object.fromEntries(counted.map((one) => [one, 0])) as Record<keyof ShownCounts, number>

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
        const shown = shownProgress(row)
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
