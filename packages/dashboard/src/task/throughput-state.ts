import type { Throughput } from '@baton/protocol'
import { STEP_MILLIS, type ThroughputStep } from '@baton/protocol/core'
import { useEffect, useState } from 'preact/hooks'
import { client } from '../service/connection.ts'
import { followLive } from '../service/followers.ts'
import { type Loaded, load, shownAfter } from '../service/loaded.ts'

/** The shortest interval between two loads of a task's history, however fast it progresses. */
const READ_EVERY_MILLIS = 2000

export interface Span {
  readonly name: string
  readonly step: ThroughputStep
  readonly millis: number
}

export const spans: readonly [Span, ...Span[]] = [
  { name: 'Last hour', step: 'minute', millis: 3_600_000 },
  { name: 'Last day', step: 'minute', millis: 86_400_000 },
  { name: 'Last 7 days', step: 'hour', millis: 7 * 86_400_000 },
]

/** The throughput history of a task, kept up to date while the task progresses. */
export function useThroughput(taskId: string, span: Span): Loaded<Throughput> {
  const [loaded, setLoaded] = useState<Loaded<Throughput>>({ kind: 'loading' })
  useEffect(() => {
    let isCurrent = true
    let next: ReturnType<typeof setTimeout> | undefined
    let readAt = 0
    const read = async () => {
      next = undefined
      readAt = Date.now()
      const from = new Date(readAt - span.millis)
      const outcome = await load(
        () => client.peek().throughput(taskId, { step: span.step, from }),
        'task_unknown',
      )
      if (isCurrent) setLoaded((before) => shownAfter(before, outcome))
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
    setLoaded({ kind: 'loading' })
    void read()
    return () => {
      isCurrent = false
      clearTimeout(next)
      unfollow()
    }
  }, [taskId, span])
  return loaded
}

/** One value for each step, up to the current one; 0 for steps in which nothing was done. */
export function seriesOf({ points }: Throughput, measure: Measure, span: Span, now: number): number[] {
  const stepMillis = STEP_MILLIS[span.step]
  const last = Math.floor(now / stepMillis)
  const series = Array<number>(span.millis / stepMillis + 1).fill(0)
  for (const point of points) {
    const at = series.length - 1 - (last - Math.floor(Date.parse(point.at) / stepMillis))
    if (at >= 0 && at < series.length) series[at] = (series[at] ?? 0) + point[measure]
  }
  return series
}

export type Measure = 'records' | 'partitions'
