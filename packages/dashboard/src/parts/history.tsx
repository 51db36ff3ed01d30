import type { Throughput } from '@baton/protocol'
import { STEP_MILLIS, type ThroughputStep } from '@baton/protocol/core'
import { refine, route } from '../current-route.ts'
import { type SpanName, spanNames } from '../route.ts'
import { now } from '../service/live.ts'
import { Chart } from './chart.tsx'
import { Choice } from './filters.tsx'
import { compact, duration } from './format.ts'

const HOUR = 3_600_000

/** A period up to now, or up to the end of what is shown, in steps. */
export interface Span {
  readonly step: ThroughputStep
  readonly millis: number
  readonly until: number | null
}

export const spans: Readonly<Record<SpanName, Span>> = {
  '1h': { step: 'minute', millis: HOUR, until: null },
  '24h': { step: 'minute', millis: 24 * HOUR, until: null },
  '7d': { step: 'hour', millis: 7 * 24 * HOUR, until: null },
}

const spanWords: Readonly<Record<SpanName, string>> = {
  '1h': 'Last hour',
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
}

/** Which period a chart shows. The choice is part of the address. */
export function SpanSelect({ own }: { own?: string }) {
  const at = route.value
  if (at.page !== 'overview' && at.page !== 'task') return null
  return (
    <Choice
      label="Time"
      none={own}
      value={at.span}
      options={spanNames.map((name) => [name, spanWords[name]])}
      choose={(span) => refine(at.page === 'task' ? { ...at, span } : { ...at, span: span ?? '1h' })}
    />
  )
}

interface HistoryProps {
  readonly throughput: Throughput
  readonly measure: 'records' | 'partitions'
  readonly span: Span
}

/** What was done per step, from the history that the service keeps. */
export function HistoryChart({ throughput, measure, span }: HistoryProps) {
  const series = seriesOf(throughput, measure, span, now.value)
  const length = duration(span.millis / 1000)
  const label = () =>
    `${measure === 'records' ? 'Records' : 'Partitions'} done per ${span.step} over ${length}, ` +
    `at most ${compact(Math.max(...series))}, in the last ${span.step} ${compact(series.at(-1) ?? 0)}`
  return <Chart series={series} millis={span.millis} until={span.until} text={compact} label={label} />
}

/**
 * One value for each step; 0 for steps in which nothing was done. The step in progress would look like a fall, so
 * it is shown only while there is no earlier one.
 */
function seriesOf(
  { points }: Throughput,
  measure: HistoryProps['measure'],
  span: Span,
  now: number,
): number[] {
  const stepMillis = STEP_MILLIS[span.step]
  const current = Math.floor((span.until ?? now) / stepMillis)
  const isBegun = ({ at }: Throughput['points'][number]) => Math.floor(Date.parse(at) / stepMillis) < current
  const last = span.until === null && points.some(isBegun) ? current - 1 : current
  const series = Array<number>(Math.ceil(span.millis / stepMillis) + 1).fill(0)
  for (const point of points) {
    const at = series.length - 1 - (last - Math.floor(Date.parse(point.at) / stepMillis))
    if (at >= 0 && at < series.length) series[at] = (series[at] ?? 0) + point[measure]
  }
  return series
}
