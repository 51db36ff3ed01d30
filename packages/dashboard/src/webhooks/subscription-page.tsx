import type { SubscriptionStatus } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { Confirmation, useControl } from '../parts/control.tsx'
import { Ago, Ahead } from '../parts/moment.tsx'
import { Empty, Fact, Finding, focusContent, Skeleton } from '../parts/panel.tsx'
import { hrefOf } from '../route.ts'
import { client, mayControl } from '../service/connection.ts'
import { DeliveryLog } from './delivery-log.tsx'
import {
  pendingOf,
  receiverOf,
  SecretDialog,
  SubscriptionBadge,
  tasksOf,
  typesOf,
  useSubscriptions,
} from './subscription.tsx'

/** One subscription: its state and its deliveries. */
export function SubscriptionPage({ subscriptionId }: { subscriptionId: string }) {
  const { loaded, refresh } = useSubscriptions()
  const found = loaded.kind === 'there' ? loaded.value.find(({ id }) => id === subscriptionId) : undefined
  return (
    <main class="page" id="content">
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={hrefOf({ page: 'webhooks' })}>Webhooks</a> <span aria-hidden="true">/</span>{' '}
        <span>Subscription</span>
      </nav>
      {found === undefined ? (
        <>
          <h1 class="task-title">{subscriptionId}</h1>
          {loaded.kind === 'loading' ? <Skeleton lines={4} /> : null}
          {loaded.kind === 'failed' ? <Empty title={loaded.detail} /> : null}
          {loaded.kind === 'there' ? <Empty title="No subscription has this id." /> : null}
        </>
      ) : (
        <>
          <header class="task-head">
            <h1 class="task-title">
              {receiverOf(found)} <SubscriptionBadge subscription={found} />
            </h1>
            <SubscriptionActions subscription={found} refresh={refresh} />
          </header>
          <SubscriptionFacts subscription={found} />
          <SubscriptionFindings subscription={found} refresh={refresh} />
          <DeliveryLog subscription={found} refresh={refresh} />
        </>
      )}
    </main>
  )
}

function SubscriptionFacts({ subscription }: { subscription: SubscriptionStatus }) {
  const { id, name, oldestPendingAt, createdAt } = subscription
  return (
    <section class="panel" aria-label="Events and deliveries">
      <dl class="facts">
        <Fact name="Pending" value={pendingOf(subscription)}>
          {oldestPendingAt === null ? (
            'everything is delivered'
          ) : (
            <>
              the oldest from <Ago at={oldestPendingAt} />
            </>
          )}
        </Fact>
        <Fact name="Events" value={typesOf(subscription)} small>
          of {tasksOf(subscription)}
        </Fact>
        <Fact name={name === null ? 'Id' : 'From the subscriptions file'} value={name ?? id} small>
          made <Ago at={createdAt} />
        </Fact>
      </dl>
    </section>
  )
}

interface FindingsProps {
  readonly subscription: SubscriptionStatus
  readonly refresh: () => void
}

/** Why nothing is sent, and what can be done about it. */
function SubscriptionFindings({ subscription, refresh }: FindingsProps) {
  const { id, state, reason, circuitOpenUntil } = subscription
  const { busy, request } = useControl(refresh)
  const enable = async () => {
    const isEnabled = await request(
      () => client.peek().subscriptions.enable(id),
      () => 'Enabled: pending events are sent now',
    )
    // The finding disappears together with the focused button.
    if (isEnabled) focusContent()
  }
  return (
    <div class="findings">
      {state === 'disabled' ? (
        <Finding
          kind="alarm"
          title="The subscription is disabled"
          action={
            mayControl.value ? (
              <button type="button" class="button primary" aria-disabled={busy} onClick={() => void enable()}>
                Enable
              </button>
            ) : null
          }
        >
          {reason ?? 'Nothing is sent'}. Events that occur while it is disabled are never sent. Pending events
          are sent when it is enabled.
        </Finding>
      ) : null}
      {state === 'active' && circuitOpenUntil !== null ? (
        <Finding kind="warn" title="The receiver is failing">
          One event is sent as a test <Ahead at={circuitOpenUntil} />. If the receiver accepts it, all pending
          events are sent. The log below shows its responses.
        </Finding>
      ) : null}
    </div>
  )
}

interface ActionsProps {
  readonly subscription: SubscriptionStatus
  readonly refresh: () => void
}

/**
 * The actions of an operator on a subscription. A subscription from the subscriptions file is changed in that
 * file.
 */
function SubscriptionActions({ subscription, refresh }: ActionsProps) {
  const { id, name, url, pending } = subscription
  const { busy, request } = useControl(refresh)
  const [asking, setAsking] = useState<'rotate' | 'delete' | null>(null)
  const [secret, setSecret] = useState<string | null>(null)
  const [fault, setFault] = useState<string | null>(null)
  const close = () => {
    setAsking(null)
    setSecret(null)
    setFault(null)
  }
  const rotate = () =>
    request(
      async () => setSecret((await client.peek().subscriptions.rotateSecret(id)).secret),
      () => 'Events are signed with both secrets for a day',
      setFault,
    )
  const remove = async () => {
    const isRemoved = await request(
      () => client.peek().subscriptions.remove(id),
      () => 'Deleted: no more events are sent',
      setFault,
    )
    if (isRemoved) location.hash = hrefOf({ page: 'webhooks' })
  }
  if (!mayControl.value)
    return (
      <p class="muted">
        This token can only view. Changing webhooks requires a token with the role operator.
      </p>
    )
  if (name !== null) return <p class="muted">Change this subscription in the subscriptions file.</p>
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
          action="Create a new secret"
          busy={busy}
          fault={fault}
          onConfirm={() => void rotate()}
          onClose={close}
        >
          <p>
            The new secret is shown once. For one day, events are signed with both secrets, so that the
            receiver has time to change.
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
              ? 'No more events are sent, and its log is deleted.'
              : `${pendingOf(subscription)} pending events are not sent, and its log is deleted.`}{' '}
            This cannot be undone.
          </p>
        </Confirmation>
      ) : null}
    </div>
  )
}
