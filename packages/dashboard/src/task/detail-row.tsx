import type { Attempt, PartitionRow } from '@baton/protocol'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Ago } from '../parts/moment.tsx'
import { exact } from '../parts/numbers.ts'
import { brief } from '../parts/times.ts'
import { instanceHref } from '../route.ts'
import { columnCount } from './partition-line.tsx'

/** The latest attempts of a partition, oldest first: holder, time and outcome. */
function Attempts({ history }: { history: readonly Attempt[] }) {
  if (history.length === 0) return null
  return (
    <ol class="attempts" aria-label="Attempts">
      {history.map((attempt) => (
        <li key={attempt.startedAt}>
          <span class="number">{attempt.attempt}</span> <strong>{attempt.outcome ?? 'running'}</strong>
          {attempt.holder === null ? null : (
            <>
              {' '}
              by <a href={instanceHref(attempt.holder)}>{attempt.holder}</a>
            </>
          )}
          , began <Ago at={attempt.startedAt} />
          {attempt.endedAt === null ? '' : `, took ${took(attempt.startedAt, attempt.endedAt)}`}
          {attempt.records === null ? '' : `, ${exact(attempt.records)} records`}
          {attempt.reason === null ? null : <span class="muted"> · {attempt.reason}</span>}
        </li>
      ))}
    </ol>
  )
}

const took = (from: string, to: string): string => brief((Date.parse(to) - Date.parse(from)) / 1000)

interface DetailRowProps {
  readonly id: string
  readonly partition: PartitionRow
  /** Reports the rendered height, by which the rows below are shifted. */
  readonly measured: (height: number) => void
}

/** The full text of a partition's last reason, and its attempts. */
export function DetailRow({ id, partition, measured }: DetailRowProps) {
  const { lastReason, history } = partition
  const row = useRef<HTMLTableRowElement>(null)
  useLayoutEffect(() => {
    const element = row.current
    if (element === null) return
    const watch = new ResizeObserver(() => measured(element.offsetHeight))
    watch.observe(element)
    measured(element.offsetHeight)
    return () => watch.disconnect()
  }, [lastReason, history.length])
  return (
    <tr class="detail" id={id} ref={row}>
      <td colSpan={columnCount.value}>
        {lastReason === null ? null : <pre>{lastReason}</pre>}
        <Attempts history={history} />
      </td>
    </tr>
  )
}
