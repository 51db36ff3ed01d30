import type { InstanceStatus, PartitionRow } from '@baton/protocol'
import { useEffect, useState } from 'preact/hooks'
import { Ahead } from '../parts/moment.tsx'
import { counted, exact } from '../parts/numbers.ts'
import { Scrolling } from '../parts/scrolling.tsx'
import { taskHref } from '../route.ts'
import { heldBy } from './held-by.ts'

/** The partitions that a worker has in hand. */
export function HeldPartitions({ instance }: { instance: InstanceStatus }) {
  const { instanceId, leases, totals } = instance
  const [held, setHeld] = useState<readonly PartitionRow[]>([])
  useEffect(() => {
    let isCurrent = true
    heldBy(instanceId, leases).then(
      (found) => isCurrent && setHeld(found),
      () => {},
    )
    return () => {
      isCurrent = false
    }
  }, [instanceId, leases, totals.partitions])
  return (
    <section class="panel" aria-labelledby="held-title">
      <header class="panel-head">
        <h2 id="held-title">In hand</h2>
        <p class="muted">{counted(leases, 'live lease')}</p>
      </header>
      {leases === 0 ? <p class="quiet">It holds nothing now.</p> : null}
      {leases > 0 && held.length > 0 ? (
        <Scrolling label="Rows of partitions in hand">
          <table class="held">
            <thead>
              <tr>
                <th scope="col">Partition</th>
                <th scope="col">Task</th>
                <th scope="col" class="number">
                  Records
                </th>
                <th scope="col" class="number">
                  Attempt
                </th>
                <th scope="col">Lease ends</th>
              </tr>
            </thead>
            <tbody>
              {held.map((row) => (
                <tr key={row.partition_name}>
                  <th scope="row" title={row.partition_name}>
                    <span class="cut-start">
                      <bdi>{row.partition_name}</bdi>
                    </span>
                  </th>
                  <td title={row.taskId}>
                    <a class="cut-start" href={taskHref(row.taskId)}>
                      <bdi>{row.taskId}</bdi>
                    </a>
                  </td>
                  <td class="number">{exact(row.record_count)}</td>
                  <td class="number">{row.attempts}</td>
                  <td>{row.leaseExpiresAt === null ? '–' : <Ahead at={row.leaseExpiresAt} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolling>
      ) : null}
      {leases > held.length && held.length > 0 ? (
        <p class="quiet">The first {held.length} that were found.</p>
      ) : null}
    </section>
  )
}
