import type { TaskView } from '@baton/protocol'
import { isUnfinishedState } from '@baton/protocol/core'
import { useState } from 'preact/hooks'
import { counted } from '../parts/format.ts'
import { Confirmation, type OrderConfirmationProps, useControl } from '../parts/order.tsx'
import { client, mayOrder } from '../service/connection.ts'
import { MoreActions } from './more-actions.tsx'

/** Seals a task, optionally with the expected number of partitions. */
function SealConfirmation({ view, busy, order, onClose }: OrderConfirmationProps) {
  const { taskId, partitions } = view
  const [expected, setExpected] = useState('')
  const [fault, setFault] = useState<string | null>(null)
  const seal = async () => {
    // An invalid number must not count as none: a seal without a number does not check for missing
    // partitions.
    if (expected !== '' && !/^\d{1,15}$/.test(expected)) {
      setFault('The number of partitions takes digits alone, or nothing.')
      return
    }
    const request = expected === '' ? {} : { partitions: Number(expected) }
    const isSealed = await order(
      () => client.peek().seal(taskId, request),
      () => 'Sealed: a call-back of something new is refused',
      setFault,
    )
    if (isSealed) onClose()
  }
  return (
    <Confirmation
      title="Seal this task?"
      action="Seal"
      busy={busy}
      fault={fault}
      onConfirm={() => void seal()}
      onClose={onClose}
    >
      <p>
        {counted(partitions.total, 'partition is', 'partitions are')} known. Once sealed, done is final and a
        call-back of something new is refused. This cannot be undone.
      </p>
      <label class="field">
        <span>Partitions expected in all (optional)</span>
        <input
          type="text"
          inputMode="numeric"
          placeholder={String(partitions.total)}
          value={expected}
          aria-invalid={fault !== null}
          onInput={(event) => {
            setExpected(event.currentTarget.value.trim())
            setFault(null)
          }}
        />
        <small>The task then tells how many are missing; new ones are refused all the same.</small>
      </label>
    </Confirmation>
  )
}

/** The actions of an operator on a task. Actions that cannot be undone need a confirmation. */
export function TaskActions({ view, refresh }: { view: TaskView; refresh: () => void }) {
  const { taskId, state, partitions, sealed } = view
  const { busy, order } = useControl(refresh)
  const [asking, setAsking] = useState<'cancel' | 'seal' | null>(null)
  const isUnfinished = isUnfinishedState(state)
  const left = partitions.total - partitions.done
  const [fault, setFault] = useState<string | null>(null)
  const close = () => {
    setAsking(null)
    setFault(null)
  }

  const cancel = async () => {
    const isCancelled = await order(
      () => client.peek().cancel(taskId),
      ({ changed }) => `Cancelled; ${counted(changed, 'partition')} given up`,
      setFault,
    )
    if (isCancelled) close()
  }

  const pause = () =>
    void order(
      () => client.peek().pause(taskId),
      () => 'Paused: leases run on, nothing new is handed out',
    )

  const resume = () =>
    void order(
      () => client.peek().resume(taskId),
      () => 'Resumed: partitions are handed out again',
    )

  return (
    <div class="buttons">
      {mayOrder.value ? null : (
        <p class="muted">This token may look; orders take one with the role operator.</p>
      )}
      {mayOrder.value && isUnfinished ? (
        // One element for both actions, so that it keeps the focus.
        <button
          type="button"
          class={state === 'paused' ? 'button primary' : 'button'}
          aria-disabled={busy}
          onClick={state === 'paused' ? resume : pause}
        >
          {state === 'paused' ? 'Resume' : 'Pause'}
        </button>
      ) : null}
      {mayOrder.value && state !== 'cancelled' && !sealed ? (
        <button type="button" class="button" onClick={() => setAsking('seal')}>
          Seal…
        </button>
      ) : null}
      {mayOrder.value && isUnfinished ? (
        <button type="button" class="button danger-quiet" onClick={() => setAsking('cancel')}>
          Cancel task…
        </button>
      ) : null}
      <MoreActions view={view} mayOrder={mayOrder.value} busy={busy} order={order} />
      {asking === 'cancel' ? (
        <Confirmation
          title="Cancel this task?"
          action={`Give up ${counted(left, 'partition')}`}
          destroys
          busy={busy}
          fault={fault}
          onConfirm={() => void cancel()}
          onClose={close}
        >
          <p>
            Every partition that is not done is given up, also those in the hands of workers. What is done
            stays done. This cannot be undone: to compute the task again, its producer needs a new task id.
          </p>
        </Confirmation>
      ) : null}
      {asking === 'seal' ? <SealConfirmation view={view} busy={busy} order={order} onClose={close} /> : null}
    </div>
  )
}
