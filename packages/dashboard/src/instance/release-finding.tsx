import type { InstanceStatus, ReleaseAnswer } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { Confirmation } from '../parts/confirmation.tsx'
import { Ago } from '../parts/moment.tsx'
import { say } from '../parts/notices.tsx'
import { counted } from '../parts/numbers.ts'
import { client, explainedOrder, mayOrder, noteRefusedOrder } from '../service/connection.ts'

/** Shown for an instance that holds leases: says whether it is silent, and offers to take the leases back. */
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
      <section
        class={`finding ${status === 'lost' ? 'alarm' : isQuiet ? 'warn' : 'hint'}`}
        aria-label={title}
      >
        <div>
          <p class="finding-title">{title}</p>
          <div class="finding-text">
            {isQuiet ? (
              <>
                It was last heard from <Ago at={lastSeenAt} />. What it holds is handed out again when the
                leases end.
              </>
            ) : (
              'Where you know that it will not come back, others can have what it holds now.'
            )}
          </div>
        </div>
        {mayOrder.value ? (
          <button type="button" class="button" onClick={() => setAsking(true)}>
            Take leases back…
          </button>
        ) : null}
      </section>
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
      noteRefusedOrder(error)
      setFault(explainedOrder(error))
    } finally {
      setBusy(false)
      refresh()
    }
  }
  return (
    <Confirmation
      title={`Take back what ${instanceId} holds?`}
      action="Take leases back"
      destroys
      busy={busy}
      fault={fault}
      onConfirm={() => void release()}
      onClose={onClose}
    >
      <p>
        {counted(leases, 'partition is', 'partitions are')} handed out again at once, and each has used up an
        attempt. Where the worker is alive after all, its work on them is done twice.
      </p>
    </Confirmation>
  )
}

function wordsOf({ released, parked }: ReleaseAnswer): string {
  const taken = `${counted(released, 'lease')} taken back`
  return parked === 0 ? taken : `${taken}; ${counted(parked, 'partition')} had no attempt left and is parked`
}
