import type { InstanceStatus } from '@baton/protocol'
import type { ComponentChildren } from 'preact'
import { Ago } from '../parts/moment.tsx'
import { compact, exact, percent } from '../parts/numbers.ts'

/** The role, totals and times of an instance. */
export function InstanceFacts({ instance }: { instance: InstanceStatus }) {
  const { role, totals, firstSeenAt, lastSeenAt, startedAt, version } = instance
  // A program may be both producer and worker. Its role is the latest of the two.
  const [pulls, callsBack] = [
    totals.pulls > 0 || role === 'worker',
    totals.callBacks > 0 || role === 'producer',
  ]
  return (
    <section class="panel" aria-label="What it did">
      <dl class="facts">
        {pulls ? <WorkerFacts instance={instance} /> : null}
        {callsBack ? <ProducerFacts instance={instance} /> : null}
        {version === undefined ? null : (
          <Fact name="Version" value={version}>
            of Baton
          </Fact>
        )}
        {startedAt === undefined ? null : (
          <Fact name="Started" value={<Ago at={startedAt} />}>
            as this process
          </Fact>
        )}
        <Fact name="Last seen" value={<Ago at={lastSeenAt} />}>
          first <Ago at={firstSeenAt} />
        </Fact>
      </dl>
    </section>
  )
}

function WorkerFacts({ instance: { leases, totals } }: { instance: InstanceStatus }) {
  const settled = totals.done + totals.failed + totals.released
  return (
    <>
      <Fact name="In hand" value={exact(leases)}>
        {leases === 1 ? 'live lease' : 'live leases'}
      </Fact>
      <Fact name="Partitions taken" value={compact(totals.partitions)}>
        {compact(totals.records)} {totals.records === 1 ? 'record' : 'records'} in {compact(totals.pulls)}{' '}
        {totals.pulls === 1 ? 'pull' : 'pulls'}
      </Fact>
      <Fact name="Done" value={compact(totals.done)}>
        {settled === 0 ? 'nothing settled yet' : `${percent(totals.done, settled)} of what it settled`}
      </Fact>
      <Fact name="Failed" value={compact(totals.failed)}>
        settled as failed
      </Fact>
      <Fact name="Released" value={compact(totals.released)}>
        given back untried
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

interface FactProps {
  readonly name: string
  readonly value: ComponentChildren
  readonly children: ComponentChildren
}

function Fact({ name, value, children }: FactProps) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd class="fact-value">{value}</dd>
      <dd class="fact-note">{children}</dd>
    </div>
  )
}
