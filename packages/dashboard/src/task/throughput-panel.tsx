import type { TaskView, Throughput } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { niceCeiling, plotOf } from '../overview/plot.ts'
import { compact, counted } from '../parts/numbers.ts'
import { duration } from '../parts/times.ts'
import { now } from '../service/clock.ts'
import { type Measure, type Span, seriesOf, spans, useThroughput } from './throughput-state.ts'

const WIDTH = 720
const HEIGHT = 160

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
      {loaded.kind === 'there' ? <Chart throughput={loaded.value} measure={measure} span={span} /> : null}
    </section>
  )
}

function sumsInWords({ points }: Throughput): string {
  const sum = (measure: Measure) => points.reduce((total, point) => total + point[measure], 0)
  return `${counted(sum('partitions'), 'partition')}, ${counted(sum('records'), 'record')}`
}

interface ChartProps {
  readonly throughput: Throughput
  readonly measure: Measure
  readonly span: Span
}

function Chart({ throughput, measure, span }: ChartProps) {
  const series = seriesOf(throughput, measure, span, now.value)
  const most = Math.max(...series)
  const ceiling = niceCeiling(most)
  const plot = plotOf(series, { width: WIDTH, height: HEIGHT, ceiling })
  const length = duration(span.millis / 1000)
  const label =
    `${measure === 'records' ? 'Records' : 'Partitions'} done per ${span.step} over the last ${length}, ` +
    `at most ${compact(most)}, in this ${span.step} so far ${compact(series.at(-1) ?? 0)}`
  return (
    <figure class="chart" role="img" aria-label={label}>
      <div class="chart-scale" aria-hidden="true">
        <span>{compact(ceiling)}</span>
        <span>{compact(ceiling / 2)}</span>
        <span>0</span>
      </div>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        <line class="chart-grid" x1="0" x2={WIDTH} y1="0.5" y2="0.5" />
        <line class="chart-grid" x1="0" x2={WIDTH} y1={HEIGHT / 2} y2={HEIGHT / 2} />
        <line class="chart-base" x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
        <path class="chart-area" d={plot.area} />
        <path class="chart-line" d={plot.line} />
      </svg>
      <div class="chart-time" aria-hidden="true">
        <span>{length} ago</span>
        <span>now</span>
      </div>
    </figure>
  )
}
