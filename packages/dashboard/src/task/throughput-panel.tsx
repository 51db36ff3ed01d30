import type { TaskView, Throughput } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { Choice } from '../parts/filters.tsx'
import { counted } from '../parts/format.ts'
import { HistoryChart, type Span, SpanSelect, spans } from '../parts/history.tsx'
import type { SpanName } from '../route.ts'
import { client } from '../service/connection.ts'
import { now } from '../service/live.ts'
import { useReading } from '../service/reading.ts'

type Measure = 'records' | 'partitions'

/**
 * The throughput of a task over time, including the time before the page was opened. Omitted if nothing was
 * done yet.
 */
export function ThroughputPanel({ view, chosen }: { view: TaskView; chosen: SpanName | null }) {
  const span = chosen === null ? lifeOf(view) : spans[chosen]
  const [measured, setMeasured] = useState<Measure | null>(null)
  const { step } = span
  const { loaded } = useReading(
    () => {
      const end = span.until ?? Date.now()
      const to = span.until === null ? {} : { to: new Date(end + 1) }
      return client.peek().throughput(view.taskId, { step, from: new Date(end - span.millis), ...to })
    },
    [view.taskId, chosen, step, span.until],
    `${view.partitions.done} ${Math.floor(now.value / 60_000)}`,
  )
  const isEmpty = loaded.kind !== 'there' || loaded.value.points.length === 0
  if (view.partitions.done === 0 && isEmpty) return null
  const measure = measured ?? (view.records.done > 0 ? 'records' : 'partitions')
  return (
    <section class="panel" aria-labelledby="throughput-title">
      <header class="panel-head">
        <h2 id="throughput-title">Done per {step}</h2>
        <p class="muted">{loaded.kind === 'there' ? sumsInWords(loaded.value) : ''}</p>
        <div class="filters">
          <Choice<Measure>
            label="Measure"
            value={measure}
            options={[
              ['records', 'Records'],
              ['partitions', 'Partitions'],
            ]}
            choose={setMeasured}
          />
          <SpanSelect own="Life of the task" />
        </div>
      </header>
      {loaded.kind === 'failed' ? <p class="muted chart-note">{loaded.detail}</p> : null}
      {loaded.kind === 'there' ? (
        <HistoryChart throughput={loaded.value} measure={measure} span={span} />
      ) : null}
    </section>
  )
}

const MINUTE = 60_000
const SHORTEST = 3 * MINUTE
const DAY = 86_400_000

/** From the first call-back until the end of the task, or now. Minutes are kept for a day. */
function lifeOf({ firstCallBackAt, finishedAt }: TaskView): Span {
  const begin = Date.parse(firstCallBackAt)
  const until = finishedAt === null ? null : Date.parse(finishedAt)
  const end = until ?? now.value
  const millis = Math.max(SHORTEST, Math.ceil((end - begin) / MINUTE) * MINUTE)
  const isLong = millis > DAY / 2 || now.value - begin > DAY
  return { step: isLong ? 'hour' : 'minute', millis, until }
}

function sumsInWords({ points }: Throughput): string {
  const sum = (measure: Measure) => points.reduce((total, point) => total + point[measure], 0)
  return `${counted(sum('partitions'), 'partition')}, ${counted(sum('records'), 'record')}`
}
