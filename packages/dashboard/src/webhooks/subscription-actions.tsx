import type { SubscriptionStatus } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { Confirmation } from '../parts/confirmation.tsx'
import { hrefOf } from '../route.ts'
import { client, mayOrder } from '../service/connection.ts'
import { useControl } from '../task/control.ts'
import { SecretDialog } from './secret-dialog.tsx'
import { pendingOf } from './subscription-words.tsx'

interface ActionsProps {
  readonly subscription: SubscriptionStatus
  readonly refresh: () => void
}

/**
 * The actions of an operator on a subscription. A subscription from the subscriptions file is changed in that
 * file.
 */
export function SubscriptionActions({ subscription, refresh }: ActionsProps) {
  const { id, name, url, pending } = subscription
  const { busy, order } = useControl(refresh)
  const [asking, setAsking] = useState<'rotate' | 'delete' | null>(null)
  const [secret, setSecret] = useState<string | null>(null)
  const [fault, setFault] = useState<string | null>(null)
  const close = () => {
    setAsking(null)
    setSecret(null)
    setFault(null)
  }
  const rotate = () =>
    order(
      async () => setSecret((await client.peek().subscriptions.rotateSecret(id)).secret),
      () => 'Events are signed with both secrets for a day',
      setFault,
    )
  const remove = async () => {
    const isRemoved = await order(
      () => client.peek().subscriptions.remove(id),
      () => 'Deleted: nothing more is sent',
      setFault,
    )
    if (isRemoved) location.hash = hrefOf({ page: 'webhooks' })
  }
  if (!mayOrder.value)
    return <p class="muted">This token may look; changing webhooks takes one with the role operator.</p>
  if (name !== null) return <p class="muted">It is changed in the subscriptions file.</p>
  return (
    <div class="buttons">
      {url === null ? null : (
        <button type="button" class="button" onClick={() => setAsking('rotate')}>
          Rotate secret…
        </button>
      )}
      <button type="button" class="button danger-quiet" onClick={() => setAsking('delete')}>
        Delete…
      </button>
      {asking === 'rotate' && secret === null ? (
        <Confirmation
          title="Rotate the secret?"
          action="Make a new secret"
          busy={busy}
          fault={fault}
          onConfirm={() => void rotate()}
          onClose={close}
        >
          <p>
            The new secret is shown once. For a day events carry the signatures of both, so that the receiver
            can change in time.
          </p>
        </Confirmation>
      ) : null}
      {secret === null ? null : <SecretDialog title="The new secret" secret={secret} onClose={close} />}
      {asking === 'delete' ? (
        <Confirmation
          title="Delete this subscription?"
          action="Delete"
          destroys
          busy={busy}
          fault={fault}
          onConfirm={() => void remove()}
          onClose={close}
        >
          <p>
            {pending === 0
              ? 'Nothing more is sent, and its log is deleted.'
              : `${pendingOf(subscription)} events that are pending are not sent any more, and its log is deleted.`}{' '}
            This cannot be undone.
          </p>
        </Confirmation>
      ) : null}
    </div>
  )
}
