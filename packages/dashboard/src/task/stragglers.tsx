import type { Straggler } from '@baton/protocol'
import { Ago, LeaseEnd } from '../parts/moment.tsx'
import { brief } from '../parts/times.ts'
import { instanceHref } from '../route.ts'

/** Partitions that are overdue, who has them, and until when. */
export function Stragglers({ stragglers }: { stragglers: readonly Straggler[] }) {
  return (
    <ul class="failures" aria-label="Overdue partitions">
      {stragglers.map(({ partition_name, holder, startedAt, leaseExpiresAt, expectedSeconds }) => (
        <li key={partition_name}>
          <strong>{partition_name}</strong>
          {holder === null ? null : (
            <>
              {' '}
              with <a href={instanceHref(holder)}>{holder}</a>
            </>
          )}
          , begun <Ago at={startedAt} />, <LeaseEnd at={leaseExpiresAt} />{' '}
          <span class="muted">others of its size take {brief(expectedSeconds)}</span>
        </li>
      ))}
    </ul>
  )
}
