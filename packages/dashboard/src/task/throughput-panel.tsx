import type { TaskView, Throughput } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { Chart } from '../parts/chart.tsx'
import { compact, counted } from '../parts/numbers.ts'
import { duration } from '../parts/times.ts'
import { now } from '../service/clock.ts'
import { type Measure, type Span, seriesOf, spans, useThroughput } from './throughput-state.ts'

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
