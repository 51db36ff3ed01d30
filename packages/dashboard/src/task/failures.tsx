import type { TaskView } from '@baton/protocol'
import { Ago } from '../parts/moment.tsx'
import { exact } from '../parts/numbers.ts'

const LISTED = 5

/** Why attempts came to nothing, the most frequent reasons first. */
export function Failures({ view: { failures, failuresOmitted } }: { view: TaskView }) {
  const listed = failures.slice(0, LISTED)
  const rest = failures.slice(LISTED)
  const omitted = rest.reduce((sum, { count }) => sum + count, failuresOmitted)
  return (
    <ul class="failures" aria-label="Failures by reason">
      {listed.map(({ outcome, reason, count, lastAt }) => (
        <li key={`${outcome} ${reason}`}>
          <strong>{exact(count)}</strong> × {reason ?? 'without a reason'}{' '}
          <span class="muted">
            last <Ago at={lastAt} />
          </span>
        </li>
      ))}
      {omitted === 0 ? null : (
        <li>
          <strong>{exact(omitted)}</strong> × other reasons
        </li>
      )}
    </ul>
  )
}
