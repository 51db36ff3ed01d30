import type { SubscriptionStatus } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { Empty, Skeleton } from '../parts/empty.tsx'
import { Ago } from '../parts/moment.tsx'
import { counted } from '../parts/numbers.ts'
import { Scrolling } from '../parts/scrolling.tsx'
import { hrefOf, overviewRoute, subscriptionHref } from '../route.ts'
import { mayOrder } from '../service/connection.ts'
import { NewSubscription } from './new-subscription.tsx'
import { pendingOf, receiverOf, SubscriptionBadge, tasksOf, typesOf } from './subscription-words.tsx'
import { useSubscriptions } from './subscriptions-state.ts'

/** All subscriptions, and whether their events are delivered. */
export function WebhooksPage() {
  const { loaded, refresh } = useSubscriptions()
  const [isAdding, setAdding] = useState(false)
  const all = loaded.kind === 'there' ? loaded.value : []
  return (
    <main class="page" id="content">
      <nav class="crumbs" aria-label="Where this is">
        <a href={hrefOf(overviewRoute)}>Overview</a> <span aria-hidden="true">/</span> <span>Webhooks</span>
      </nav>
      <header class="task-head">
        <h1 class="task-title">Webhooks</h1>
        <div class="buttons">
          {mayOrder.value ? (
            <button type="button" class="button primary" onClick={() => setAdding(true)}>
              New subscription…
            </button>
          ) : (
            <p class="muted">This token may look; changing webhooks takes one with the role operator.</p>
          )}
        </div>
      </header>
      <section class="panel" aria-labelledby="subscriptions-title">
        <header class="panel-head">
          <h2 id="subscriptions-title">Subscriptions</h2>
          <p class="muted">{all.length === 0 ? '' : counted(all.length, 'subscription')}</p>
        </header>
        {loaded.kind === 'loading' ? <Skeleton lines={3} /> : null}
        {loaded.kind === 'failed' ? <Empty title={loaded.detail} /> : null}
        {loaded.kind === 'there' && all.length === 0 ? (
          <Empty title="No webhooks yet.">
            <p>A subscription posts an event to a URL when a task is done, stalled or cancelled.</p>
          </Empty>
        ) : null}
        {all.length === 0 ? null : <SubscriptionTable subscriptions={all} />}
      </section>
      {isAdding ? <NewSubscription refresh={refresh} onClose={() => setAdding(false)} /> : null}
    </main>
  )
}

function SubscriptionTable({ subscriptions }: { subscriptions: readonly SubscriptionStatus[] }) {
  return (
    <Scrolling label="Rows of subscriptions">
      <table class="held">
        <thead>
          <tr>
            <th scope="col">Receiver</th>
            <th scope="col">State</th>
            <th scope="col" class="wide-only">
              Events
            </th>
            <th scope="col" class="roomy-only">
              Tasks
            </th>
            <th scope="col" class="number wide-only">
              Pending
            </th>
            <th scope="col" class="wide-only">
              Oldest
            </th>
          </tr>
        </thead>
        <tbody>
          {subscriptions.map((one) => (
            <tr key={one.id}>
              <th scope="row" title={receiverOf(one)}>
                <a class="cut-start" href={subscriptionHref(one.id)}>
                  <bdi>{receiverOf(one)}</bdi>
                </a>
                {one.name === null ? null : <span class="under">from the file: {one.name}</span>}
                <span class="under narrow-only">
                  {typesOf(one)}, {pendingOf(one)} pending
                </span>
              </th>
              <td>
                <SubscriptionBadge subscription={one} />
              </td>
              <td class="wide-only">
                <span class="types">{typesOf(one)}</span>
              </td>
              <td class="roomy-only">{tasksOf(one)}</td>
              <td class="number wide-only">{pendingOf(one)}</td>
              <td class="wide-only">
                {one.oldestPendingAt === null ? '–' : <Ago at={one.oldestPendingAt} />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolling>
  )
}
