import type { InstanceStatus, ProducedTask } from '@baton/protocol'
import { useControl } from '../parts/control.tsx'
import { CopyAs } from '../parts/copy.tsx'
import { compact, exact, percent } from '../parts/format.ts'
import { Ago, Since } from '../parts/moment.tsx'
import { Empty, Fact, Finding, Scrolling, Skeleton } from '../parts/panel.tsx'
import { InstanceBadge, TaskBadge } from '../parts/states.tsx'
import { Head, Name } from '../parts/table.tsx'
import { fleetRoute, hrefOf, taskHref } from '../route.ts'
import { client, mayControl } from '../service/connection.ts'
import { load, usePolled } from '../service/live.ts'
import { AttemptsPanel } from './attempts-panel.tsx'
import { HeldPartitions, ReleaseFinding } from './leases.tsx'

const roleWords: Record<InstanceStatus['role'], string> = {
  service: 'Baton node',
  worker: 'Worker',
  producer: 'Producer',
}

export function InstancePage({ instanceId }: { instanceId: string }) {
  const { loaded, refresh } = useInstance(instanceId)
  return (
    <main class="page" id="content">
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={hrefOf(fleetRoute)}>Instances</a> <span aria-hidden="true">/</span>{' '}
        <span>{loaded.kind === 'there' ? roleWords[loaded.value.role] : 'Instance'}</span>
      </nav>
      <header class="task-head">
        <h1 class="task-title">
          {instanceId} {loaded.kind === 'there' ? <InstanceBadge state={loaded.value.status} /> : null}
        </h1>
        <div class="buttons">
          {loaded.kind === 'there' ? <PauseButton instance={loaded.value} refresh={refresh} /> : null}
          <CopyAs path={`test/instance-status?instanceId=${encodeURIComponent(instanceId)}`} />
        </div>
      </header>
      {loaded.kind === 'there' && loaded.value.pausedAt !== undefined ? (
        <div class="findings">
          <Finding kind="warn" title="The instance is paused">
            Its pulls get nothing. It was paused <Since at={loaded.value.pausedAt} />.
          </Finding>
        </div>
      ) : null}
      {loaded.kind === 'loading' ? <Skeleton lines={4} /> : null}
      {loaded.kind === 'failed' ? <Empty title={loaded.detail} /> : null}
      {loaded.kind === 'unknown' ? (
        <Empty title="No instance has this name.">
          <p>A client is listed when it sends X-Instance-Id, and deleted after a week without a request.</p>
        </Empty>
      ) : null}
      {loaded.kind === 'there' ? (
        <>
          <InstanceFacts instance={loaded.value} />
          <ReleaseFinding instance={loaded.value} refresh={refresh} />
          {loaded.value.role !== 'service' && loaded.value.totals.pulls > 0 ? (
            <>
              <HeldPartitions instance={loaded.value} />
              <AttemptsPanel instance={loaded.value} />
            </>
          ) : null}
          {loaded.value.tasks === undefined ? null : <CalledBackTasks tasks={loaded.value.tasks} />}
        </>
      ) : null}
    </main>
  )
}

function PauseButton({ instance, refresh }: { instance: InstanceStatus; refresh: () => void }) {
  const { instanceId, pausedAt, role } = instance
  const { busy, request } = useControl(refresh)
  if (!mayControl.value || role === 'service') return null
  const isPaused = pausedAt !== undefined
  const change = () =>
    void request(
      () => (isPaused ? client.peek().resumeInstance(instanceId) : client.peek().pauseInstance(instanceId)),
      () =>
        isPaused
          ? 'Resumed: its pulls get partitions again'
          : 'Paused: its pulls get nothing; its leases go on',
    )
  return (
    <button
      type="button"
      class={isPaused ? 'button primary' : 'button'}
      aria-disabled={busy}
      onClick={change}
    >
      {isPaused ? 'Resume' : 'Pause'}
    </button>
  )
}

/** The numbers of an instance change too often for events, so they are polled. */
const READ_EVERY_MILLIS = 2000

const useInstance = (instanceId: string) =>
  usePolled(
    () => load(() => client.peek().instanceStatus(instanceId), 'instance_unknown'),
    READ_EVERY_MILLIS,
    [instanceId],
  )

/** The role, totals and times of an instance. */
function InstanceFacts({ instance }: { instance: InstanceStatus }) {
  const { role, totals, firstSeenAt, lastSeenAt } = instance
  // A program may be both producer and worker. Its role is the latest of the two.
  const [pulls, callsBack] = [
    totals.pulls > 0 || role === 'worker',
    totals.callBacks > 0 || role === 'producer',
  ]
  return (
    <section class="panel" aria-label="Totals">
      <dl class="facts">
        {pulls ? <WorkerFacts instance={instance} /> : null}
        {callsBack ? <ProducerFacts instance={instance} /> : null}
        {role === 'service' ? <NodeFacts node={instance} /> : null}
        <Fact name="Last seen" value={<Ago at={lastSeenAt} />}>
          first <Ago at={firstSeenAt} />
        </Fact>
      </dl>
    </section>
  )
}

function NodeFacts({ node: { version, startedAt, leadsSince, load } }: { node: InstanceStatus }) {
  return (
    <>
      <Fact name="Role" value={leadsSince === undefined ? 'Follower' : 'Leader'}>
        {leadsSince === undefined ? (
          'passes requests on to the leader'
        ) : (
          <>
            since <Ago at={leadsSince} />
          </>
        )}
      </Fact>
      <Fact name="Load" value={load === undefined ? '–' : percent(load * 100, 100)}>
        busy in the last seconds
      </Fact>
      <Fact name="Version" value={version ?? '–'}>
        of Baton
      </Fact>
      <Fact name="Started" value={startedAt === undefined ? '–' : <Ago at={startedAt} />}>
        of this process
      </Fact>
    </>
  )
}

function WorkerFacts({ instance: { leases, totals } }: { instance: InstanceStatus }) {
  const settled = totals.done + totals.failed + totals.released + totals.expired
  return (
    <>
      <Fact name="Leased" value={exact(leases)}>
        {leases === 1 ? 'live lease' : 'live leases'}
      </Fact>
      <Fact name="Partitions taken" value={compact(totals.partitions)}>
        {compact(totals.records)} {totals.records === 1 ? 'record' : 'records'} in {compact(totals.pulls)}{' '}
        {totals.pulls === 1 ? 'pull' : 'pulls'}
      </Fact>
      <Fact name="Done" value={compact(totals.done)}>
        {settled === 0 ? 'nothing ended yet' : `${percent(totals.done, settled)} of its ended leases`}
      </Fact>
      <Fact name="Failed" value={compact(totals.failed)}>
        settled as failed
      </Fact>
      <Fact name="Expired" value={compact(totals.expired)}>
        not settled in time
      </Fact>
      <Fact name="Released" value={compact(totals.released)}>
        returned without an attempt
      </Fact>
    </>
  )
}

function ProducerFacts({ instance: { totals } }: { instance: InstanceStatus }) {
  return (
    <>
      <Fact name="Partitions called back" value={compact(totals.calledBack)}>
        new ones
      </Fact>
      <Fact name="Call-backs" value={compact(totals.callBacks)}>
        accepted
      </Fact>
    </>
  )
}

/** The tasks that a producer called back, and their progress. */
function CalledBackTasks({ tasks }: { tasks: readonly ProducedTask[] }) {
  return (
    <section class="panel" aria-labelledby="called-back-title">
      <header class="panel-head">
        <h2 id="called-back-title">Tasks that it called back</h2>
      </header>
      {tasks.length === 0 ? <p class="quiet">No tasks yet.</p> : null}
      {tasks.length === 0 ? null : (
        <Scrolling label="Rows of tasks">
          <table class="held">
            <Head
              columns={[
                'Task',
                'State',
                ['Done', 'number'],
                ['Records', 'number wide-only'],
                ['Partitions', 'number wide-only'],
                ['Last call-back', 'wide-only'],
              ]}
            />
            <tbody>
              {tasks.map(({ taskId, state, records, partitions, lastCallBackAt }) => (
                <tr key={taskId}>
                  <th scope="row">
                    <Name text={taskId} href={taskHref(taskId)} />
                  </th>
                  <td>
                    <TaskBadge state={state} />
                  </td>
                  <td class="number">
                    {records.total > 0
                      ? percent(records.done, records.total)
                      : percent(partitions.done, partitions.total)}
                  </td>
                  <td class="number wide-only">{exact(records.total)}</td>
                  <td class="number wide-only">{exact(partitions.total)}</td>
                  <td class="wide-only">
                    <Ago at={lastCallBackAt} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolling>
      )}
    </section>
  )
}
