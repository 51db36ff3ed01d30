import type { Attempt, PartitionRow } from '@baton/protocol'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { ReleaseLease } from '../instance/leases.tsx'
import { CopyAs } from '../parts/copy.tsx'
import { brief, exact, progressWords } from '../parts/format.ts'
import { Ago } from '../parts/moment.tsx'
import { instanceHref } from '../route.ts'
import { now } from '../service/live.ts'

interface DetailProps {
  readonly id: string
  readonly partition: PartitionRow
  readonly columns: number
  readonly refresh: () => void
  /** Reports the rendered height, by which the rows below are shifted. */
  readonly measured: (height: number) => void
}

/** Everything about one partition: its last reason, its attempts over time, the fields beyond the contract. */
export function PartitionDetail({ id, partition, columns, refresh, measured }: DetailProps) {
  const { taskId, partition_name, lastReason, history, computeTableName, traceparent, priorityLevel } =
    partition
  const { progress, checkpoint } = partition
  const row = useRef<HTMLTableRowElement>(null)
  useLayoutEffect(() => {
    const element = row.current
    if (element === null) return
    const watch = new ResizeObserver(() => measured(element.offsetHeight))
    watch.observe(element)
    measured(element.offsetHeight)
    return () => watch.disconnect()
  }, [lastReason, history.length, progress, checkpoint])
  const index = Number(/(\d+)$/.exec(partition_name)?.[1] ?? 0)
  const path = `tasks/${encodeURIComponent(taskId)}/partitions?level=${priorityLevel}&indexes=${index}-${index}`
  return (
    <tr class="detail" id={id} ref={row}>
      <td colSpan={columns}>
        {lastReason === null ? null : <pre>{lastReason}</pre>}
        <Attempts history={history} />
        <dl class="detail-facts">
          <Detail name="Table">{computeTableName}</Detail>
          <Detail name="Called back">
            <Ago at={partition.calledBackAt} />
          </Detail>
          {progress === undefined ? null : (
            <Detail name="Progress">
              {progressWords(progress, partition.record_count)}, <Ago at={progress.at} />
            </Detail>
          )}
          {checkpoint === undefined ? null : <Detail name="Checkpoint">{checkpoint}</Detail>}
          {traceparent === undefined ? null : <Detail name="Trace">{traceparent}</Detail>}
          {Object.entries(partition.fields ?? {}).map(([field, value]) => (
            <Detail key={field} name={field}>
              {typeof value === 'string' ? value : JSON.stringify(value)}
            </Detail>
          ))}
        </dl>
        <div class="detail-actions">
          {partition.state === 'leased' ? (
            <ReleaseLease taskId={taskId} name={partition_name} refresh={refresh} />
          ) : null}
          <CopyAs path={path} />
        </div>
      </td>
    </tr>
  )
}

function Detail({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

const endOf = ({ endedAt }: Attempt) => (endedAt === null ? now.value : Date.parse(endedAt))

/** The latest attempts of a partition, oldest first: holder, time, duration and outcome. */
function Attempts({ history }: { history: readonly Attempt[] }) {
  const [first] = history
  if (first === undefined) return <p class="muted">No attempt yet.</p>
  const begin = Date.parse(first.startedAt)
  const length = Math.max(1, ...history.map((attempt) => endOf(attempt) - begin))
  return (
    <ol class="attempts" aria-label="Attempts">
      {history.map((attempt) => {
        const { startedAt, holder, outcome, records, reason, logUrl } = attempt
        const [from, to] = [Date.parse(startedAt) - begin, endOf(attempt) - begin]
        const share = { left: `${(from / length) * 100}%`, width: `${((to - from) / length) * 100}%` }
        return (
          <li key={startedAt}>
            <span class="timeline" aria-hidden="true">
              <span class={`outcome-${outcome ?? 'running'}`} style={share} />
            </span>
            <span class="attempt-text">
              Attempt {attempt.attempt}: <strong>{outcome ?? 'running'}</strong>
              {holder === null ? null : (
                <>
                  {' '}
                  {outcome === null ? 'with' : 'by'} <a href={instanceHref(holder)}>{holder}</a>
                </>
              )}
              , began <Ago at={startedAt} />, {outcome === null ? 'for' : 'took'} {brief((to - from) / 1000)}
              {records === null ? '' : `, ${exact(records)} records`}
              {logUrl === undefined ? null : (
                <>
                  {' · '}
                  <a href={logUrl} target="_blank" rel="noreferrer">
                    Log
                  </a>
                </>
              )}
              {reason === null ? null : <span class="muted"> · {reason}</span>}
            </span>
          </li>
        )
      })}
    </ol>
  )
}
