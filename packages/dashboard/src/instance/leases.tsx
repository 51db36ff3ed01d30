import type { HeldLease, InstanceStatus, ReleaseAnswer } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { Confirmation, say, useControl } from '../parts/control.tsx'
import { counted, exact, progressWords } from '../parts/format.ts'
import { Ago, LeaseEnd } from '../parts/moment.tsx'
import { Finding, Scrolling } from '../parts/panel.tsx'
import { Head, Name, unseen } from '../parts/table.tsx'
import { partitionHref, taskHref } from '../route.ts'
import { client, explainedControl, mayControl, noteRefusedControl } from '../service/connection.ts'
import { useReading } from '../service/reading.ts'

const SHOWN_AT_MOST = 200

/** The partitions that a worker holds. */
export function HeldPartitions({ instance }: { instance: InstanceStatus }) {
  const { instanceId, leases, totals } = instance
  const { loaded, refresh } = useReading(
    () => client.peek().instanceLeases(instanceId, { limit: SHOWN_AT_MOST }),
    [instanceId],
    `${leases} ${totals.partitions}`,
  )
  const held = loaded.kind === 'there' ? loaded.value.leases : []
  return (
    <section class="panel" aria-labelledby="held-title">
      <header class="panel-head">
        <h2 id="held-title">Leased partitions</h2>
        <p class="muted">{counted(leases, 'live lease')}</p>
      </header>
      {leases === 0 ? <p class="quiet">It holds no leases.</p> : null}
      {loaded.kind === 'failed' ? (
        <p class="quiet fault" role="alert">
          The leases could not be read. {loaded.detail}
        </p>
      ) : null}
      {leases > 0 && held.length > 0 ? (
        <Scrolling label="Rows of leased partitions">
          <table class="held">
            <Head
              columns={[
                'Partition',
                ['Task', 'wide-only'],
                ['Records', 'number'],
                ['Attempt', 'number wide-only'],
                ['Since', 'wide-only'],
                ['Lease', 'wide-only'],
                [unseen('Action'), ''],
              ]}
            />
            <tbody>
              {held.map((lease) => (
                <HeldRow key={lease.partition_name} lease={lease} refresh={refresh} />
              ))}
            </tbody>
          </table>
        </Scrolling>
      ) : null}
      {leases > held.length && held.length > 0 ? (
        <p class="quiet">The first {held.length} to expire.</p>
      ) : null}
    </section>
  )
}

function HeldRow({ lease, refresh }: { lease: HeldLease; refresh: () => void }) {
  const { taskId, partition_name, record_count, attempt, leasedAt, expiresAt, progress } = lease
  return (
    <tr>
      <th scope="row">
        <Name text={partition_name} href={partitionHref(partition_name)} />
        <span class="under narrow-only">
          <LeaseEnd at={expiresAt} />
        </span>
        {progress === undefined ? null : (
          <span class="under cut">{progressWords(progress, record_count)}</span>
        )}
      </th>
      <td class="wide-only">
        <Name text={taskId} href={taskHref(taskId)} />
      </td>
      <td class="number">{exact(record_count)}</td>
      <td class="number wide-only">{attempt}</td>
      <td class="wide-only">
        <Ago at={leasedAt} />
      </td>
      <td class="wide-only">
        <LeaseEnd at={expiresAt} />
      </td>
      <td class="acts">
        <ReleaseLease taskId={taskId} name={partition_name} refresh={refresh} />
      </td>
    </tr>
  )
}

interface ReleaseLeaseProps {
  readonly taskId: string
  readonly name: string
  readonly refresh: () => void
}

/** Releases one lease, after a confirmation: if its worker is alive, the work is done twice. */
export function ReleaseLease({ taskId, name, refresh }: ReleaseLeaseProps) {
  const { busy, request } = useControl(refresh)
  const [isAsking, setAsking] = useState(false)
  const [fault, setFault] = useState<string | null>(null)
  if (!mayControl.value) return null
  const release = async () => {
    const isDone = await request(() => client.peek().releasePartition(taskId, name), wordsOf, setFault)
    if (isDone) setAsking(false)
  }
  return (
    <>
      <button
        type="button"
        class="button small"
        aria-label={`Release the lease of ${name}`}
        onClick={() => setAsking(true)}
      >
        Release
      </button>
      {isAsking ? (
        <Confirmation
          title="Release this lease?"
          action="Release this lease"
          destroys
          busy={busy}
          fault={fault}
          onConfirm={() => void release()}
          onClose={() => setAsking(false)}
        >
          <p>
            {name} is handed out again at once, and an attempt is used. If the worker is still alive, its work
            is done twice.
          </p>
        </Confirmation>
      ) : null}
    </>
  )
}

/** Shown for an instance that holds leases: whether it is silent, and an offer to release them. */
export function ReleaseFinding({ instance, refresh }: { instance: InstanceStatus; refresh: () => void }) {
  const { status, leases, lastSeenAt } = instance
  const [isAsking, setAsking] = useState(false)
  if (leases === 0) return null
  const isQuiet = status === 'silent' || status === 'lost'
  const title = isQuiet
    ? `It holds ${counted(leases, 'lease')} and is ${status}`
    : `It holds ${counted(leases, 'lease')}`
  return (
    <div class="findings">
      <Finding
        kind={status === 'lost' ? 'alarm' : isQuiet ? 'warn' : 'hint'}
        title={title}
        action={
          mayControl.value ? (
            <button type="button" class="button" onClick={() => setAsking(true)}>
              Release its leases…
            </button>
          ) : null
        }
      >
        {isQuiet ? (
          <>
            Its last request was <Ago at={lastSeenAt} />. Its partitions are handed out again when the leases
            expire.
          </>
        ) : (
          'If the worker will not return, release its leases: its partitions are handed out again at once.'
        )}
      </Finding>
      {isAsking ? (
        <ReleaseConfirmation instance={instance} onClose={() => setAsking(false)} refresh={refresh} />
      ) : null}
    </div>
  )
}

interface ConfirmationProps {
  readonly instance: InstanceStatus
  readonly onClose: () => void
  readonly refresh: () => void
}

function ReleaseConfirmation({ instance: { instanceId, leases }, onClose, refresh }: ConfirmationProps) {
  const [busy, setBusy] = useState(false)
  const [fault, setFault] = useState<string | null>(null)
  const release = async () => {
    setBusy(true)
    try {
      say('said', wordsOf(await client.peek().releaseInstance(instanceId)))
      onClose()
    } catch (error) {
      noteRefusedControl(error)
      setFault(explainedControl(error))
    } finally {
      setBusy(false)
      refresh()
    }
  }
  return (
    <Confirmation
      title={`Release the leases of ${instanceId}?`}
      action={`Release ${counted(leases, 'lease')}`}
      destroys
      busy={busy}
      fault={fault}
      onConfirm={() => void release()}
      onClose={onClose}
    >
      <p>
        {counted(leases, 'partition is', 'partitions are')} handed out again at once, and each lease counts as
        an attempt. If the worker is still alive, its work is done twice.
      </p>
    </Confirmation>
  )
}

function wordsOf({ released, parked }: Pick<ReleaseAnswer, 'released' | 'parked'>): string {
  const words = `${counted(released, 'lease')} released`
  return parked === 0
    ? words
    : `${words}; ${counted(parked, 'partition is', 'partitions are')} parked, without attempts left`
}
