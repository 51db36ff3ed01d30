import type { TaskState, TaskSummary } from '@baton/protocol'
import { computed, signal } from '@preact/signals'
import { client, explained, noteRefusal } from './connection.ts'
import { followLive } from './followers.ts'
import { noteDone } from './throughput.ts'

/** Of each unfinished state at most so many are loaded; totals say when there are more. */
const UNFINISHED_LOADED = 300
const NEWEST_LOADED = 50
/** Events come in bursts; the page is drawn once per burst. */
const GATHER_MILLIS = 80

export const unfinishedStates: readonly TaskState[] = ['open', 'stalled', 'paused']

/** Every task that the page knows of. */
export const tasks = signal<ReadonlyMap<string, TaskSummary>>(new Map())
export const tasksLoad = signal<'loading' | 'loaded' | { readonly failed: string }>('loading')
/** Whether there are more unfinished tasks than were loaded. */
export const unfinishedBeyond = signal(false)
/** Where the list of all tasks, newest first, goes on. */
export const olderCursor = signal<string | null>(null)

export const unfinishedTasks = computed(() =>
  [...tasks.value.values()].filter(({ state }) => unfinishedStates.includes(state)),
)

const gathered = new Map<string, TaskSummary>()
let drawing: ReturnType<typeof setTimeout> | undefined

export function followTasks(): void {
  followLive({
    reload: () => void loadTasks(),
    onEvent: (event) => {
      if (event.name !== 'task') return
      noteTask(event.data)
    },
  })
}

/** A task as it is now. */
export function noteTask(task: TaskSummary): void {
  const before = gathered.get(task.taskId) ?? tasks.peek().get(task.taskId)
  if (before !== undefined && before.generation === task.generation) {
    noteDone(task.records.done - before.records.done)
  }
  gathered.set(task.taskId, task)
  if (drawing === undefined) drawing = setTimeout(draw, GATHER_MILLIS)
}

function draw(): void {
  drawing = undefined
  tasks.value = new Map([...tasks.peek(), ...gathered])
  gathered.clear()
}

async function loadTasks(): Promise<void> {
  try {
    const [newest, ...unfinished] = await Promise.all([
      client.peek().tasks({ limit: NEWEST_LOADED }),
      ...unfinishedStates.map((state) => client.peek().tasks({ state, limit: UNFINISHED_LOADED })),
    ])
    unfinishedBeyond.value = unfinished.some(({ next }) => next !== null)
    if (olderCursor.peek() === null || tasksLoad.peek() === 'loading') olderCursor.value = newest.next
    merge([...newest.tasks, ...unfinished.flatMap((page) => page.tasks)])
    tasksLoad.value = 'loaded'
  } catch (error) {
    noteRefusal(error)
    tasksLoad.value = { failed: explained(error) }
  }
}

/** More of the list of all tasks, or of one state, or of what a search finds. */
export async function loadMore(query: {
  state?: TaskState
  search?: string
  cursor?: string
}): Promise<string | null> {
  const page = await client.peek().tasks({ ...query, limit: NEWEST_LOADED })
  merge(page.tasks)
  return page.next
}

export async function loadOlder(): Promise<void> {
  const cursor = olderCursor.peek()
  if (cursor !== null) olderCursor.value = await loadMore({ cursor })
}

/** An event may have overtaken the answer to a request: what is further on stays. */
function merge(loaded: readonly TaskSummary[]): void {
  const merged = new Map(tasks.peek())
  for (const task of loaded) {
    const known = merged.get(task.taskId)
    const isBehind = known?.generation === task.generation && known.records.done > task.records.done
    if (!isBehind) merged.set(task.taskId, task)
  }
  tasks.value = merged
}
