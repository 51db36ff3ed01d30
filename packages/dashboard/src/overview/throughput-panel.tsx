import { perSecond } from '../parts/numbers.ts'
import { duration } from '../parts/times.ts'
import { now } from '../service/clock.ts'
import { secondsShown, smoothSeries } from '../service/throughput.ts'
import { niceCeiling, type Plot, plotOf } from './plot.ts'

const WIDTH = 720
const HEIGHT = 160

/** Live records per second, since the page was opened. */
export function ThroughputPanel() {
  const series = smoothSeries(now.value)
  const span = duration(secondsShown(now.value))
  const values = series.filter((value) => value !== null)
  const ceiling = niceCeiling(Math.max(0, ...values))
  const plot = plotOf(series, { width: WIDTH, height: HEIGHT, ceiling })
  return (
    <section class="panel" aria-labelledby="throughput-title">
      <header class="panel-head">
        <h2 id="throughput-title">Records per second</h2>
        <p class="muted">last {span}</p>
      </header>
      <Chart plot={plot} span={span} ceiling={ceiling} latest={series.at(-1) ?? null} />
    </section>
  )
}

interface ChartProps {
  readonly plot: Plot
  readonly span: string
  readonly ceiling: number
  readonly latest: number | null
}

function Chart({ plot, span, ceiling, latest }: ChartProps) {
  const label = `Records per second over the last ${span}, now ${perSecond(latest)}, scale to ${perSecond(ceiling)}`
  return (
    <figure class="chart" role="img" aria-label={label}>
      <div class="chart-scale" aria-hidden="true">
        <span>{perSecond(ceiling)}</span>
        <span>{perSecond(ceiling / 2)}</span>
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
        <span>{span} ago</span>
        <span>now</span>
      </div>
    </figure>
  )
}
