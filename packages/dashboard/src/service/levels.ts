import type { LevelView, TaskView } from '@baton/protocol'
import { signal } from '@preact/signals'
import { client } from './connection.ts'
import { tasks } from './tasks.ts'

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
