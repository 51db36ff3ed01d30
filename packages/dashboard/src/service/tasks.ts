import type { TasksOptions } from '@baton/client'
import type { LevelView, TaskSummary, TaskView } from '@baton/protocol'
import { isUnfinishedState, unfinishedTaskStates } from '@baton/protocol/core'
import { computed, signal } from '@preact/signals'
import { client, explained, noteRefusal } from './connection.ts'
import { KnownTasks } from './known-tasks.ts'
import { followLive, liveState } from './live.ts'
import { noteDone, watchThroughput } from './throughput.ts'

/** The pace of an idle task falls without events, so it is polled at this interval. */
export const PACE_IS_FRESH_MILLIS = 10_000

/** The most tasks to load for each unfinished state. The totals show whether there are more. */
const UNFINISHED_LOADED = 300
const NEWEST_LOADED = 50
/** Events come in bursts. The page is rendered once per burst. */
const GATHER_MILLIS = 80
/** The most pages without new tasks that are skipped in one go. */
const PAGES_PASSED = 20
const LOAD_AGAIN_MILLIS = 5000

/** Every loaded task. */
export const tasks = signal<ReadonlyMap<string, TaskSummary>>(new Map())
export const tasksLoad = signal<'loading' | 'loaded' | { readonly failed: string }>('loading')
/** The number of full loads so far. */
export const tasksLoads = signal(0)
/** Whether there are more unfinished tasks than were loaded. */
export const unfinishedBeyond = signal(false)
/** The cursor of the list of all tasks, newest first. */
export const olderCursor = signal<string | null>(null)

export const unfinishedTasks = computed(() =>
  [...tasks.value.values()].filter(({ state }) => isUnfinishedState(state)),
)

const known = new KnownTasks()
let drawing: ReturnType<typeof setTimeout> | undefined
let again: ReturnType<typeof setTimeout> | undefined

export function followTasks(): void {
  followLive({
    reload: () => void loadTasks(),
    onEvent: (event) => {
      if (event.name !== 'task') return
      noteDone(known.update(event.data))
      drawing ??= setTimeout(draw, GATHER_MILLIS)
    },
  })
  setInterval(() => {
    if (document.visibilityState === 'visible' && liveState.peek() === 'live') void refreshPaces()
  }, PACE_IS_FRESH_MILLIS)
}

function draw(): void {
  clearTimeout(drawing)
  drawing = undefined
  tasks.value = known.all()
}

async function loadTasks(): Promise<void> {
  clearTimeout(again)
  const begun = known.begin()
  try {
    const [newest, ...unfinished] = await Promise.all([
      client.peek().tasks({ limit: NEWEST_LOADED }),
      ...unfinishedTaskStates.map((state) => client.peek().tasks({ state, limit: UNFINISHED_LOADED })),
    ])
    unfinishedBeyond.value = unfinished.some(({ next }) => next !== null)
    olderCursor.value = newest.next
    known.replace([...newest.tasks, ...unfinished.flatMap((page) => page.tasks)], begun)
    draw()
    tasksLoad.value = 'loaded'
    tasksLoads.value += 1
    if (liveState.peek() === 'live') watchThroughput()
  } catch (error) {
    tasksLoad.value = { failed: explained(error) }
    if (!noteRefusal(error)) again = setTimeout(() => void loadTasks(), LOAD_AGAIN_MILLIS)
  }
}

export type TaskQuery = Pick<TasksOptions, 'state' | 'parked' | 'search' | 'cursor'>

/**
 * Loads more of the list of all tasks, or of the results of a filter or a search. Stops at a page with any
 * tasks, or with new ones: filtered pages may be empty, and many unfinished tasks are already loaded. Returns
 * the next cursor.
 */
export async function loadMore(query: TaskQuery, until: 'any' | 'new ones'): Promise<string | null> {
  let next = query.cursor ?? null
  for (let passed = 0; passed < PAGES_PASSED; passed += 1) {
    const begun = known.begin()
    const page = await client
      .peek()
      .tasks({ ...query, limit: NEWEST_LOADED, ...(next === null ? {} : { cursor: next }) })
    const isEnough = page.tasks.some(({ taskId }) => until === 'any' || !known.knows(taskId))
    known.add(page.tasks, begun)
    next = page.next
    if (isEnough || next === null) break
  }
  draw()
  return next
}

export async function loadOlder(): Promise<void> {
  const cursor = olderCursor.peek()
  if (cursor !== null) olderCursor.value = await loadMore({ cursor }, 'new ones')
}

/** Loads the running tasks again if one of them has a pace but had no recent event. */
async function refreshPaces(): Promise<void> {
  const isStale = unfinishedTasks
    .peek()
    .some((task) => task.recordsPerSecond !== null && known.ageOf(task.taskId) > PACE_IS_FRESH_MILLIS / 2)
  if (!isStale) return
  const begun = known.begin()
  try {
    const page = await client.peek().tasks({ state: 'open', limit: UNFINISHED_LOADED })
    known.add(page.tasks, begun)
    draw()
  } catch (error) {
    noteRefusal(error)
  }
}

/**
 * Levels are loaded one task at a time, with a pause, so that the load on the service does not depend on the
 * number of tasks shown.
 */
const PAUSE_MILLIS = 600
const SLOWEST_SHARE = 20

/** The levels of the tasks on the screen, as last loaded. */
export const levelsOfTask = signal<ReadonlyMap<string, readonly LevelView[]>>(new Map())

/** Tasks with more levels than their view lists. */
export const tasksWithMoreLevels = signal<ReadonlySet<string>>(new Set())

type Levels = Pick<TaskView, 'levels' | 'levelsOmitted'>

const wanted = new Map<string, number>()
/** The state and partition counts of each task when its levels were loaded. */
const seen = new Map<string, string>()
const readAt = new Map<string, number>()
let running = false

/** Requests the levels of a task that is on the screen. Returns a function that cancels this. */
export function wantLevels(taskId: string): () => void {
  wanted.set(taskId, (wanted.get(taskId) ?? 0) + 1)
  if (!running) void readOn()
  return () => {
    const others = (wanted.get(taskId) ?? 1) - 1
    if (others === 0) wanted.delete(taskId)
    else wanted.set(taskId, others)
  }
}

/**
 * `look` describes the task as it was known when the request was sent. Later changes may not be in the
 * answer.
 */
export function noteLevels(taskId: string, { levels, levelsOmitted }: Levels, look: string): void {
  seen.set(taskId, look)
  readAt.set(taskId, Date.now())
  levelsOfTask.value = new Map([...levelsOfTask.peek(), [taskId, levels]])
  const hadMore = tasksWithMoreLevels.peek().has(taskId)
  if (hadMore === levelsOmitted > 0) return
  const others = [...tasksWithMoreLevels.peek()].filter((other) => other !== taskId)
  tasksWithMoreLevels.value = new Set(hadMore ? others : [...others, taskId])
}

async function readOn(): Promise<void> {
  running = true
  while (wanted.size > 0) {
    const taskId = document.visibilityState === 'visible' ? mostOutdated() : undefined
    let pause = PAUSE_MILLIS
    if (taskId !== undefined) {
      const begun = performance.now()
      const isFirst = !seen.has(taskId)
      await read(taskId)
      // Poll a slow service less often. After a task's first load continue at once, so that other new tasks
      // appear soon.
      pause = isFirst ? 20 : Math.max(pause, (performance.now() - begun) * SLOWEST_SHARE)
    }
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
  running = false
}

async function read(taskId: string): Promise<void> {
  const look = lookOf(taskId)
  try {
    noteLevels(taskId, await client.peek().task(taskId), look)
  } catch {
    // The bar without levels is still correct. The next change triggers another request.
    seen.set(taskId, look)
    readAt.set(taskId, Date.now())
  }
}

function mostOutdated(): string | undefined {
  const changed = [...wanted.keys()].filter((taskId) => seen.get(taskId) !== lookOf(taskId))
  return changed.sort((a, b) => (readAt.get(a) ?? 0) - (readAt.get(b) ?? 0))[0]
}

export function lookOf(taskId: string): string {
  const task = tasks.peek().get(taskId)
  return task === undefined ? '' : `${task.state} ${Object.values(task.partitions).join()}`
}
