import type { SubscriptionStatus } from '@baton/protocol'
import { MAX_COUNTED_DELIVERIES, webhookEventTypes } from '@baton/protocol/core'
import { useEffect, useId, useRef } from 'preact/hooks'
import { atLeast, exact } from '../parts/format.ts'
import { Copyable } from '../parts/panel.tsx'
import { client } from '../service/connection.ts'
import { load, usePolled } from '../service/live.ts'

/**
 * The state of a subscription. After too many failures its circuit is open, and nothing is sent for a while.
 */
export function SubscriptionBadge({
  subscription: { state, circuitOpenUntil },
}: {
  subscription: SubscriptionStatus
}) {
  if (state === 'disabled') return <span class="badge subscription-disabled">Disabled</span>
  if (circuitOpenUntil !== null) return <span class="badge subscription-failing">Failing</span>
  return <span class="badge subscription-active">Active</span>
}

export const pendingOf = ({ pending }: SubscriptionStatus): string =>
  atLeast(exact(pending), pending < MAX_COUNTED_DELIVERIES)

export const typesOf = ({ types }: SubscriptionStatus): string =>
  types.length === webhookEventTypes.length ? 'all events' : types.join(', ')

export const tasksOf = ({ taskPrefix }: SubscriptionStatus): string =>
  taskPrefix === '' ? 'all tasks' : `${taskPrefix}…`

/** The receiver of its events. */
export const receiverOf = ({ url }: SubscriptionStatus): string => url ?? 'Stored for reading'

interface SecretDialogProps {
  readonly title: string
  readonly secret: string
  readonly onClose: () => void
}

/** Shows a secret. The service sends it only once, so it is gone when the dialog is closed. */
export function SecretDialog({ title, secret, onClose }: SecretDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return (
    <dialog ref={dialog} class="confirmation" aria-labelledby={titleId} onClose={onClose}>
      <form method="dialog">
        <h2 id={titleId}>{title}</h2>
        <p>The receiver checks signatures with this secret. Copy it now: it is not shown again.</p>
        <Copyable text={secret} label="Secret" />
        <div class="buttons">
          <button type="submit" class="button primary">
            Done
          </button>
        </div>
      </form>
    </dialog>
  )
}

const READ_EVERY_MILLIS = 3000

export const useSubscriptions = () =>
  usePolled(() => load(() => client.peek().subscriptions.list()), READ_EVERY_MILLIS)

/** The latest deliveries of a subscription. */
export const useDeliveries = (id: string, limit: number) =>
  usePolled(() => load(() => client.peek().subscriptions.deliveries(id, { limit })), READ_EVERY_MILLIS, [
    id,
    limit,
  ])
