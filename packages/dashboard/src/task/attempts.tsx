import type { Attempt } from '@baton/protocol'
import { Ago } from '../parts/moment.tsx'
import { exact } from '../parts/numbers.ts'
import { brief } from '../parts/times.ts'
import { instanceHref } from '../route.ts'

/** The latest attempts of a partition, oldest first: who made them, when, and how they ended. */
export function Attempts({ history }: { history: readonly Attempt[] }) {
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
