import type { InstanceStatus } from '@baton/protocol'
import { InstanceBadge } from '../parts/badge.tsx'
import { Empty, Skeleton } from '../parts/empty.tsx'
import { hrefOf, overviewRoute } from '../route.ts'
import { CalledBackTasks } from './called-back-tasks.tsx'
import { HeldPartitions } from './held-partitions.tsx'
import { InstanceFacts } from './instance-facts.tsx'
import { useInstance } from './instance-state.ts'
import { ReleaseFinding } from './release-finding.tsx'

const roleWords: Record<InstanceStatus['role'], string> = {
  service: 'Baton node',
  worker: 'Worker',
  producer: 'Producer',
}

export function InstancePage({ instanceId }: { instanceId: string }) {
  const { loaded, refresh } = useInstance(instanceId)
  return (
    <main class="page" id="content">
      <nav class="crumbs" aria-label="Where this is">
        <a href={hrefOf(overviewRoute)}>Overview</a> <span aria-hidden="true">/</span>{' '}
        <span>{loaded.kind === 'there' ? roleWords[loaded.value.role] : 'Instance'}</span>
      </nav>
      <h1 class="task-title">
        {instanceId} {loaded.kind === 'there' ? <InstanceBadge state={loaded.value.status} /> : null}
      </h1>
      {loaded.kind === 'loading' ? <Skeleton lines={4} /> : null}
      {loaded.kind === 'failed' ? <Empty title={loaded.detail} /> : null}
      {loaded.kind === 'unknown' ? (
        <Empty title="No instance of this name is known.">
          <p>
            A client is known once it sends its name with X-Instance-Id, and forgotten after a week of
            silence.
          </p>
        </Empty>
      ) : null}
      {loaded.kind === 'there' ? (
        <>
          <InstanceFacts instance={loaded.value} />
          <ReleaseFinding instance={loaded.value} refresh={refresh} />
          {loaded.value.role !== 'service' && loaded.value.totals.pulls > 0 ? (
            <HeldPartitions instance={loaded.value} />
          ) : null}
          {loaded.value.tasks === undefined ? null : <CalledBackTasks tasks={loaded.value.tasks} />}
        </>
      ) : null}
    </main>
  )
}
