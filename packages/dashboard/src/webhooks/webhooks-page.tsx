import type {
  SubscribeRequest,
  SubscriptionSecret,
  SubscriptionStatus,
  WebhookEventType,
} from '@baton/protocol'
import { webhookEventTypes } from '@baton/protocol/core'
import { useState } from 'preact/hooks'
import { Confirmation, useControl } from '../parts/control.tsx'
import { counted } from '../parts/format.ts'
import { Ago } from '../parts/moment.tsx'
import { Empty, Scrolling, Skeleton } from '../parts/panel.tsx'
import { Head, Name } from '../parts/table.tsx'
import { subscriptionHref } from '../route.ts'
import { client, mayControl } from '../service/connection.ts'
import {
  pendingOf,
  receiverOf,
  SecretDialog,
  SubscriptionBadge,
  tasksOf,
  typesOf,
  useSubscriptions,
} from './subscription.tsx'

/** All subscriptions, and whether their events are delivered. */
export function WebhooksPage() {
  const { loaded, refresh } = useSubscriptions()
  const [isAdding, setAdding] = useState(false)
  const all = loaded.kind === 'there' ? loaded.value : []
  return (
    <main class="page" id="content">
      <header class="task-head">
        <h1 class="task-title">Webhooks</h1>
        <div class="buttons">
          {mayControl.value ? (
            <button type="button" class="button primary" onClick={() => setAdding(true)}>
              New subscription…
            </button>
          ) : (
            <p class="muted">
              This token can only view. Changing webhooks requires a token with the role operator.
            </p>
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
            <p>A subscription sends an event to a URL when a task is done, stalled or cancelled.</p>
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
        <Head
          columns={[
            'Receiver',
            'State',
            ['Events', 'wide-only'],
            ['Tasks', 'roomy-only'],
            ['Pending', 'number wide-only'],
            ['Oldest', 'wide-only'],
          ]}
        />
        <tbody>
          {subscriptions.map((one) => (
            <tr key={one.id}>
              <th scope="row">
                <Name text={receiverOf(one)} href={subscriptionHref(one.id)} />
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

interface NewSubscriptionProps {
  readonly refresh: () => void
  readonly onClose: () => void
}

/** Prompts for the URL and the events, then shows the secret once. */
function NewSubscription({ refresh, onClose }: NewSubscriptionProps) {
  const { busy, request } = useControl(refresh)
  const [url, setUrl] = useState('')
  const [taskPrefix, setTaskPrefix] = useState('')
  const [types, setTypes] = useState<readonly WebhookEventType[]>(webhookEventTypes)
  const [fault, setFault] = useState<string | null>(null)
  const [made, setMade] = useState<SubscriptionSecret | null>(null)
  if (made !== null)
    return <SecretDialog title="The webhook is set up" secret={made.secret} onClose={onClose} />

  const create = async () => {
    if (url === '') {
      setFault('Enter a URL that begins with https:// or http://.')
      return
    }
    if (types.length === 0) {
      setFault('Select at least one event.')
      return
    }
    const subscription: SubscribeRequest = {
      url,
      types: [...types],
      ...(taskPrefix === '' ? {} : { taskPrefix }),
    }
    await request(
      async () => setMade(await client.peek().subscriptions.create(subscription)),
      () => 'Subscribed: events are sent from now on',
      setFault,
    )
  }
  return (
    <Confirmation
      title="New subscription"
      action="Subscribe"
      dismiss="Close"
      busy={busy}
      fault={fault}
      onConfirm={() => void create()}
      onClose={onClose}
    >
      <label class="field">
        <span>URL</span>
        <input
          type="url"
          autoComplete="off"
          placeholder="https://pipeline.example/hooks"
          value={url}
          aria-invalid={fault !== null && url === ''}
          onInput={(event) => {
            setUrl(event.currentTarget.value.trim())
            setFault(null)
          }}
        />
        <small>Events are sent to this URL as CloudEvents, signed as Standard Webhooks.</small>
      </label>
      <fieldset class="choices">
        <legend>Events</legend>
        {webhookEventTypes.map((type) => (
          <label key={type}>
            <input
              type="checkbox"
              checked={types.includes(type)}
              onChange={(event) => {
                const isChosen = event.currentTarget.checked
                setTypes(webhookEventTypes.filter((one) => (one === type ? isChosen : types.includes(one))))
                setFault(null)
              }}
            />
            {type}
          </label>
        ))}
      </fieldset>
      <label class="field">
        <span>Task id prefix (optional)</span>
        <input
          type="text"
          autoComplete="off"
          placeholder="orders-"
          value={taskPrefix}
          onInput={(event) => setTaskPrefix(event.currentTarget.value)}
        />
      </label>
    </Confirmation>
  )
}
