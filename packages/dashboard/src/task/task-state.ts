import { ProblemError } from '@baton/client'
import type { TaskView } from '@baton/protocol'
import { useEffect, useState } from 'preact/hooks'
import { client, explained, noteRefusal } from '../service/connection.ts'
import { followLive } from '../service/followers.ts'
import { lookOf, noteLevels } from '../service/levels.ts'

/** However fast a task moves, it is read again at most so often. */
const READ_EVERY_MILLIS = 1000
const PACE_IS_FRESH_MILLIS = 10_000
const READ_AGAIN_MILLIS = 5000

export type LoadedTask =
  | { readonly kind: 'loading' }
  | { readonly kind: 'there'; readonly view: TaskView }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly detail: string }

/** A task as the service sees it, kept up to date; `refresh` looks at once. */
export function useTask(taskId: string): { loaded: LoadedTask; refresh: () => void } {
  const [loaded, setLoaded] = useState<LoadedTask>({ kind: 'loading' })
  const [reader] = useState(() => ({ refresh: () => {} }))
  useEffect(() => {
    let isCurrent = true
    let next: ReturnType<typeof setTimeout> | undefined
    let readAt = 0
    let claimsPace = false
    const read = async () => {
      next = undefined
      readAt = Date.now()
      const outcome = await readTask(taskId)
      claimsPace = outcome.kind === 'there' && outcome.view.recordsPerSecond !== null
      if (isCurrent)
        setLoaded((before) => (outcome.kind === 'failed' && before.kind === 'there' ? before : outcome))
      // A stream that could be resumed tells of what changed, not of what could not be read.
      if (isCurrent && outcome.kind === 'failed') next ??= setTimeout(() => void read(), READ_AGAIN_MILLIS)
    }
    const readSoon = () => {
      next ??= setTimeout(() => void read(), Math.max(0, readAt + READ_EVERY_MILLIS - Date.now()))
    }
    const unfollow = followLive({
      reload: readSoon,
      onEvent: (event) => {
        if (event.name === 'task' && event.data.taskId === taskId) readSoon()
      },
    })
    // A pace falls while nothing happens, and of nothing there are no events.
    const refreshing = setInterval(() => {
      const isQuiet = Date.now() - readAt > PACE_IS_FRESH_MILLIS / 2
      if (claimsPace && isQuiet && document.visibilityState === 'visible') readSoon()
    }, PACE_IS_FRESH_MILLIS)
    reader.refresh = () => void read()
    setLoaded({ kind: 'loading' })
    void read()
    return () => {
      isCurrent = false
      clearTimeout(next)
      clearInterval(refreshing)
      unfollow()
    }
  }, [taskId, reader])
  return { loaded, refresh: () => reader.refresh() }
}

async function readTask(taskId: string): Promise<LoadedTask> {
  const look = lookOf(taskId)
  try {
    const view = await client.peek().task(taskId)
    noteLevels(taskId, view, look)
    return { kind: 'there', view }
  } catch (error) {
    noteRefusal(error)
    if (error instanceof ProblemError && error.code === 'task_unknown') return { kind: 'unknown' }
    return { kind: 'failed', detail: explained(error) }
  }
}
