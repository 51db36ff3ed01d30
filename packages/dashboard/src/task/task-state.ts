import type { TaskView } from '@baton/protocol'
import { useEffect, useState } from 'preact/hooks'
import { client } from '../service/connection.ts'
import { followLive } from '../service/followers.ts'
import { lookOf, noteLevels } from '../service/levels.ts'
import { type Loaded, load, shownAfter } from '../service/loaded.ts'
import { PACE_IS_FRESH_MILLIS } from '../service/tasks.ts'

/** The shortest interval between two loads of a task, however fast it progresses. */
const READ_EVERY_MILLIS = 1000
const READ_AGAIN_MILLIS = 5000

/** A task, kept up to date. `refresh` loads it at once. */
export function useTask(taskId: string): { loaded: Loaded<TaskView>; refresh: () => void } {
  const [loaded, setLoaded] = useState<Loaded<TaskView>>({ kind: 'loading' })
  const [reader] = useState(() => ({ refresh: () => {} }))
  useEffect(() => {
    let isCurrent = true
    let next: ReturnType<typeof setTimeout> | undefined
    let readAt = 0
    let claimsPace = false
    const read = async () => {
      next = undefined
      readAt = Date.now()
      const outcome = await load(() => readTask(taskId), 'task_unknown')
      claimsPace = outcome.kind === 'there' && outcome.value.recordsPerSecond !== null
      if (isCurrent) setLoaded((before) => shownAfter(before, outcome))
      // A resumed stream sends what changed, but does not trigger another load after a failed one.
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

async function readTask(taskId: string): Promise<TaskView> {
  const look = lookOf(taskId)
  const view = await client.peek().task(taskId)
  noteLevels(taskId, view, look)
  return view
}
