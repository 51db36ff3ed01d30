import { Chart } from '../parts/chart.tsx'
import { perSecond } from '../parts/numbers.ts'
import { duration } from '../parts/times.ts'
import { now } from '../service/clock.ts'
import { secondsShown, smoothSeries } from '../service/throughput.ts'

/** Live records per second, since the page was opened. */
export function ThroughputPanel() {
  const series = smoothSeries(now.value)
  const span = duration(secondsShown(now.value))
  const label = (ceiling: number) =>
    `Records per second over the last ${span}, now ${perSecond(series.at(-1) ?? null)}, scale to ${perSecond(ceiling)}`
  return (
    <section class="panel" aria-labelledby="throughput-title">
      <header class="panel-head">
        <h2 id="throughput-title">Records per second</h2>
        <p class="muted">last {span}</p>
      </header>
      <Chart series={series} span={span} text={perSecond} label={label} />
    </section>
  )
}
