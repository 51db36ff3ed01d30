import type { SubscriptionStatus } from '@baton/protocol'
import { Empty, Skeleton } from '../parts/empty.tsx'
import { Ago } from '../parts/moment.tsx'
import { hrefOf, overviewRoute } from '../route.ts'
import { DeliveryLog } from './delivery-log.tsx'
import { SubscriptionActions } from './subscription-actions.tsx'
import { SubscriptionFindings } from './subscription-findings.tsx'
import { pendingOf, receiverOf, SubscriptionBadge, tasksOf, typesOf } from './subscription-words.tsx'
import { useSubscriptions } from './subscriptions-state.ts'

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
    <section class="panel" aria-label="What it is told">
      <dl class="facts">
        <div class="fact">
          <dt>Pending</dt>
          <dd class="fact-value">{pendingOf(subscription)}</dd>
          <dd class="fact-note">
            {oldestPendingAt === null ? (
              'everything is delivered'
            ) : (
              <>
                the oldest from <Ago at={oldestPendingAt} />
              </>
            )}
          </dd>
        </div>
        <div class="fact">
          <dt>Events</dt>
          <dd class="fact-value small">{typesOf(subscription)}</dd>
          <dd class="fact-note">of {tasksOf(subscription)}</dd>
        </div>
        <div class="fact">
          <dt>{name === null ? 'Id' : 'From the subscriptions file'}</dt>
          <dd class="fact-value small">{name ?? id}</dd>
          <dd class="fact-note">
            made <Ago at={createdAt} />
          </dd>
        </div>
      </dl>
    </section>
  )
}
