import type { SubscriptionStatus } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { Ago, Ahead } from '../parts/moment.tsx'
import { Confirmation, useControl } from '../parts/order.tsx'
import { Empty, Fact, Finding, focusContent, Skeleton } from '../parts/panel.tsx'
import { hrefOf, overviewRoute } from '../route.ts'
import { client, mayOrder } from '../service/connection.ts'
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
      <nav class="crumbs" aria-label="Where this is">
        <a href={hrefOf(overviewRoute)}>Overview</a> <span aria-hidden="true">/</span>{' '}
        <a href={hrefOf({ page: 'webhooks' })}>Webhooks</a> <span aria-hidden="true">/</span>{' '}
        <span>Subscription</span>
      </nav>
      {found === undefined ? (
        <>
          <h1 class="task-title">{subscriptionId}</h1>
          {loaded.kind === 'loading' ? <Skeleton lines={4} /> : null}
          {loaded.kind === 'failed' ? <Empty title={loaded.detail} /> : null}
          {loaded.kind === 'there' ? <Empty title="There is no subscription of this id." /> : null}
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
    <section class="panel" aria-label="What it receives">
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
  const { busy, order } = useControl(refresh)
  const enable = async () => {
    const isEnabled = await order(
      () => client.peek().subscriptions.enable(id),
      () => 'Enabled: what is pending is sent now',
    )
    // The finding disappears together with the focused button.
    if (isEnabled) focusContent()
  }
  return (
    <div class="findings">
      {state === 'disabled' ? (
        <Finding
          kind="alarm"
          title="It is disabled"
          action={
            mayOrder.value ? (
              <button type="button" class="button primary" aria-disabled={busy} onClick={() => void enable()}>
                Enable
              </button>
            ) : null
          }
        >
          {reason ?? 'Nothing is sent'}. Events of this time are not sent later; those that are pending are.
        </Finding>
      ) : null}
      {state === 'active' && circuitOpenUntil !== null ? (
        <Finding kind="warn" title="The receiver fails">
          It is tried again with one event <Ahead at={circuitOpenUntil} />. When it takes that, everything
          that waits is sent. The log below says what it answered.
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
