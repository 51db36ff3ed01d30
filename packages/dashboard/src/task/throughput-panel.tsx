import type { TaskView, Throughput } from '@baton/protocol'
import { STEP_MILLIS, type ThroughputStep } from '@baton/protocol/core'
import { useEffect, useState } from 'preact/hooks'
import { Chart } from '../parts/chart.tsx'
import { compact, counted, duration } from '../parts/format.ts'
import { client } from '../service/connection.ts'
import { followLive, type Loaded, load, now, shownAfter } from '../service/live.ts'

/**
 * The throughput of a task over time, including the time before the page was opened. Omitted if nothing was
 * done yet.
 */
export function ThroughputPanel({ view }: { view: TaskView }) {
  const [span, setSpan] = useState<Span>(spans[0])
  const [chosen, setChosen] = useState<Measure | null>(null)
  const loaded = useThroughput(view.taskId, span)
  const isEmpty = loaded.kind !== 'there' || loaded.value.points.length === 0
  if (view.partitions.done === 0 && isEmpty) return null
  const measure = chosen ?? (view.records.done > 0 ? 'records' : 'partitions')
  return (
    <section class="panel" aria-labelledby="throughput-title">
      <header class="panel-head">
        <h2 id="throughput-title">Done per {span.step}</h2>
        <p class="muted">{loaded.kind === 'there' ? sumsInWords(loaded.value) : ''}</p>
        <div class="filters">
          <select
            aria-label="Measure"
            value={measure}
            onChange={(event) => setChosen(event.currentTarget.value as Measure)}
          >
            <option value="records">Records</option>
            <option value="partitions">Partitions</option>
          </select>
          <select
            aria-label="Time"
            value={span.name}
            onChange={(event) =>
              setSpan(spans.find(({ name }) => name === event.currentTarget.value) ?? spans[0])
            }
          >
            {spans.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </div>
      </header>
      {loaded.kind === 'failed' ? <p class="muted chart-note">{loaded.detail}</p> : null}
      {loaded.kind === 'there' ? (
        <ThroughputChart throughput={loaded.value} measure={measure} span={span} />
      ) : null}
    </section>
  )
}

function sumsInWords({ points }: Throughput): string {
  const sum = (measure: Measure) => points.reduce((total, point) => total + point[measure], 0)
  return `${counted(sum('partitions'), 'partition')}, ${counted(sum('records'), 'record')}`
}

interface ThroughputChartProps {
  readonly throughput: Throughput
  readonly measure: Measure
  readonly span: Span
}

function ThroughputChart({ throughput, measure, span }: ThroughputChartProps) {
  const series = seriesOf(throughput, measure, span, now.value)
  const length = duration(span.millis / 1000)
  const label = () =>
    `${measure === 'records' ? 'Records' : 'Partitions'} done per ${span.step} over the last ${length}, ` +
    `at most ${compact(Math.max(...series))}, in this ${span.step} so far ${compact(series.at(-1) ?? 0)}`
  return <Chart series={series} span={length} text={compact} label={label} />
}

/** The shortest interval between two loads of a task's history, however fast it progresses. */
const READ_EVERY_MILLIS = 2000

interface Span {
  readonly name: string
  readonly step: ThroughputStep
  readonly millis: number
}

const spans: readonly [Span, ...Span[]] = [
  { name: 'Last hour', step: 'minute', millis: 3_600_000 },
  { name: 'Last day', step: 'minute', millis: 86_400_000 },
  { name: 'Last 7 days', step: 'hour', millis: 7 * 86_400_000 },
]

/** The throughput history of a task, kept up to date while the task progresses. */
function useThroughput(taskId: string, span: Span): Loaded<Throughput> {
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
function seriesOf({ points }: Throughput, measure: Measure, span: Span, now: number): number[] {
  const stepMillis = STEP_MILLIS[span.step]
  const last = Math.floor(now / stepMillis)
  const series = Array<number>(span.millis / stepMillis + 1).fill(0)
  for (const point of points) {
    const at = series.length - 1 - (last - Math.floor(Date.parse(point.at) / stepMillis))
    if (at >= 0 && at < series.length) series[at] = (series[at] ?? 0) + point[measure]
  }
  return series
}

type Measure = 'records' | 'partitions'
