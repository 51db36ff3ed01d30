import { now } from '../service/live.ts'
import { clock } from './format.ts'
import { niceCeiling, plotOf } from './plot.ts'

const WIDTH = 720
const HEIGHT = 160
/** The times that are written below the chart. */
const TICKS = 4

interface ChartProps {
  /** One value per step of time; null where nothing is known. */
  readonly series: readonly (number | null)[]
  /** Length of the time shown. */
  readonly millis: number
  /** When it ends; null: now. */
  readonly until?: number | null
  /** How a value is written on the scale. */
  readonly text: (value: number) => string
  /** What the chart says, for readers who do not see it. */
  readonly label: (ceiling: number) => string
}

/** Values over time, up to now. */
export function Chart({ series, millis, until = null, text, label }: ChartProps) {
  const ceiling = niceCeiling(Math.max(0, ...series.filter((value) => value !== null)))
  const plot = plotOf(series, { width: WIDTH, height: HEIGHT, ceiling })
  return (
    <figure class="chart" role="img" aria-label={label(ceiling)}>
      <div class="chart-scale" aria-hidden="true">
        <span>{text(ceiling)}</span>
        <span>{text(ceiling / 2)}</span>
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
        {Array.from({ length: TICKS }, (_, tick) => (
          <span key={tick}>
            {until === null && tick === TICKS - 1
              ? 'now'
              : clock((until ?? now.value) - millis * (1 - tick / (TICKS - 1)), millis)}
          </span>
        ))}
      </div>
    </figure>
  )
}
