import type { InstanceStatus, PartitionRow, ReleaseAnswer } from '@baton/protocol'
import { useEffect, useState } from 'preact/hooks'
import { Confirmation, say } from '../parts/control.tsx'
import { counted, exact } from '../parts/format.ts'
import { Ago, LeaseEnd } from '../parts/moment.tsx'
import { Finding, Scrolling } from '../parts/panel.tsx'
import { taskHref } from '../route.ts'
import {
  client,
  explained,
  explainedControl,
  mayControl,
  noteRefusal,
  noteRefusedControl,
} from '../service/connection.ts'
import { tasks } from '../service/tasks.ts'

const TASKS_LOOKED_AT = 20
const ROWS_LOOKED_AT = 500
const SHOWN_AT_MOST = 200

/**
 * Searches the leased partitions of all tasks with leases, until all partitions of the instance are found.
 */
async function heldBy(instanceId: string, leases: number): Promise<PartitionRow[]> {
  const found: PartitionRow[] = []
  const leasing = [...tasks.peek().values()].filter(({ partitions }) => partitions.leased > 0)
  for (const { taskId } of leasing.slice(0, TASKS_LOOKED_AT)) {
    if (found.length >= Math.min(leases, SHOWN_AT_MOST)) break
    const { partitions } = await client.peek().partitions(taskId, { state: 'leased', limit: ROWS_LOOKED_AT })
    found.push(...partitions.filter(({ holder }) => holder === instanceId))
  }
  return found.slice(0, SHOWN_AT_MOST)
}

const READ_AGAIN_MILLIS = 5000

/** The partitions that an instance holds. Loaded again when its numbers change, and after a failure. */
function useHeld(instanceId: string, leases: number, taken: number) {
  const [held, setHeld] = useState<readonly PartitionRow[] | null>(null)
  const [fault, setFault] = useState<string | null>(null)
  const [failures, setFailures] = useState(0)
  useEffect(() => {
    let isCurrent = true
    let again: ReturnType<typeof setTimeout> | undefined
    heldBy(instanceId, leases).then(
      (found) => {
        if (!isCurrent) return
        setHeld(found)
        setFault(null)
      },
      (error: unknown) => {
        noteRefusal(error)
        if (!isCurrent) return
        setFault(explained(error))
        again = setTimeout(() => setFailures((count) => count + 1), READ_AGAIN_MILLIS)
      },
    )
    return () => {
      isCurrent = false
      clearTimeout(again)
    }
  }, [instanceId, leases, taken, failures])
  return { held, fault }
}

/** The partitions that a worker holds. */
export function HeldPartitions({ instance }: { instance: InstanceStatus }) {
  const { instanceId, leases, totals } = instance
  const { held, fault } = useHeld(instanceId, leases, totals.partitions)
  return (
    <section class="panel" aria-labelledby="held-title">
      <header class="panel-head">
        <h2 id="held-title">Leased partitions</h2>
        <p class="muted">{counted(leases, 'live lease')}</p>
      </header>
      {leases === 0 ? <p class="quiet">It holds no leases.</p> : null}
      {fault === null ? null : (
        <p class="quiet fault" role="alert">
          {held === null ? 'The leases could not be read.' : 'The list of leases may be out of date.'} {fault}
        </p>
      )}
      {leases > 0 && held?.length === 0 ? (
        <p class="quiet">None of the leases was found in the tasks that were searched.</p>
      ) : null}
      {leases > 0 && held !== null && held.length > 0 ? (
        <Scrolling label="Rows of leased partitions">
          <table class="held">
            <thead>
              <tr>
                <th scope="col">Partition</th>
                <th scope="col" class="wide-only">
                  Task
                </th>
                <th scope="col" class="number">
                  Records
                </th>
                <th scope="col" class="number wide-only">
                  Attempt
                </th>
                <th scope="col" class="wide-only">
                  Lease
                </th>
              </tr>
            </thead>
            <tbody>
              {held.map((row) => (
                <tr key={row.partition_name}>
                  <th scope="row" title={row.partition_name}>
                    <span class="cut-start">
                      <bdi>{row.partition_name}</bdi>
                    </span>
                    <span class="under narrow-only">
                      <a class="cut-start" href={taskHref(row.taskId)}>
                        <bdi>{row.taskId}</bdi>
                      </a>
                      <LeaseWords row={row} />
                    </span>
                  </th>
                  <td class="wide-only" title={row.taskId}>
                    <a class="cut-start" href={taskHref(row.taskId)}>
                      <bdi>{row.taskId}</bdi>
                    </a>
                  </td>
                  <td class="number">{exact(row.record_count)}</td>
                  <td class="number wide-only">{row.attempts}</td>
                  <td class="wide-only">
                    <LeaseWords row={row} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolling>
      ) : null}
      {held !== null && leases > held.length && held.length > 0 ? (
        <p class="quiet">The first {held.length} that were found.</p>
      ) : null}
    </section>
  )
}

function LeaseWords({ row: { leaseExpiresAt } }: { row: PartitionRow }) {
  return leaseExpiresAt === null ? <>–</> : <LeaseEnd at={leaseExpiresAt} />
}

/** Shown for an instance that holds leases: whether it is silent, and an offer to revoke the leases. */
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
              Revoke leases…
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
          'If the worker will not return, revoke its leases to hand out its partitions now.'
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
      title={`Revoke the leases of ${instanceId}?`}
      action="Revoke leases"
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

function wordsOf({ released, parked }: ReleaseAnswer): string {
  const revoked = `${counted(released, 'lease')} revoked`
  return parked === 0
    ? revoked
    : `${revoked}; ${counted(parked, 'partition is', 'partitions are')} parked, without attempts left`
}
