import type { Failure, TaskView } from '@baton/protocol'
import { compact, counted, exact } from '../parts/format.ts'
import { Ago } from '../parts/moment.tsx'
import { taskHref } from '../route.ts'
import { client, mayControl } from '../service/connection.ts'

/** As many as there is space for. Those of parked partitions come first. */
const LISTED = 5

export const failureWords = ({ key, reason }: Failure): string =>
  reason ?? (key === 'other' ? 'other reasons' : 'without a reason')

type Retry = (send: () => ReturnType<ReturnType<typeof client.peek>['retry']>) => Promise<void>

/** Why partitions are parked, each with a button that retries those. */
export function ParkedReasons({
  view: { taskId, failures },
  busy,
  retry,
}: {
  view: TaskView
  busy: boolean
  retry: Retry
}) {
  const parked = failures.filter((failure) => failure.parked.partitions > 0)
  const rest = parked.slice(LISTED).reduce((sum, failure) => sum + failure.parked.partitions, 0)
  return (
    <ul class="failures" aria-label="Why they are parked">
      {parked.slice(0, LISTED).map((failure) => {
        const { key, parked: some } = failure
        const records = `${compact(some.records)} ${some.records === 1 ? 'record' : 'records'}`
        return (
          <li key={key}>
            <a href={taskHref(taskId, { state: 'parked', reason: key })}>{failureWords(failure)}</a>{' '}
            {mayControl.value ? (
              <button
                type="button"
                class="button small"
                aria-disabled={busy}
                onClick={() => void retry(() => client.peek().retry(taskId, { reason: key }))}
              >
                Retry {some.partitions === 1 ? 'this one' : `these ${exact(some.partitions)}`}, {records}
              </button>
            ) : (
              <span class="muted">
                {counted(some.partitions, 'partition')}, {records}
              </span>
            )}
          </li>
        )
      })}
      {rest === 0 ? null : <li>{counted(rest, 'partition')} for other reasons</li>}
    </ul>
  )
}

/** Reasons of unsuccessful attempts. */
export function Failures({ view: { taskId, failures } }: { view: TaskView }) {
  const rest = failures.slice(LISTED).reduce((sum, { count }) => sum + count, 0)
  return (
    <ul class="failures" aria-label="Failures by reason">
      {failures.slice(0, LISTED).map((failure) => (
        <li key={failure.key}>
          <strong>{exact(failure.count)}</strong> ×{' '}
          <a href={taskHref(taskId, { reason: failure.key })}>{failureWords(failure)}</a>{' '}
          <span class="muted">
            latest <Ago at={failure.lastAt} />
          </span>
        </li>
      ))}
      {rest === 0 ? null : (
        <li>
          <strong>{exact(rest)}</strong> × other reasons
        </li>
      )}
    </ul>
  )
}
