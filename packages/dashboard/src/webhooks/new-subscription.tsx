import type { SubscribeRequest, SubscriptionSecret, WebhookEventType } from '@baton/protocol'
import { webhookEventTypes } from '@baton/protocol/core'
import { useState } from 'preact/hooks'
import { Confirmation } from '../parts/confirmation.tsx'
import { client } from '../service/connection.ts'
import { useControl } from '../task/control.ts'
import { SecretDialog } from './secret-dialog.tsx'

interface NewSubscriptionProps {
  readonly refresh: () => void
  readonly onClose: () => void
}

/** Prompts for the URL and the events, then shows the secret once. */
export function NewSubscription({ refresh, onClose }: NewSubscriptionProps) {
  const { busy, order } = useControl(refresh)
  const [url, setUrl] = useState('')
  const [taskPrefix, setTaskPrefix] = useState('')
  const [types, setTypes] = useState<readonly WebhookEventType[]>(webhookEventTypes)
  const [fault, setFault] = useState<string | null>(null)
  const [made, setMade] = useState<SubscriptionSecret | null>(null)
  if (made !== null)
    return <SecretDialog title="The webhook is set up" secret={made.secret} onClose={onClose} />

  const create = async () => {
    if (url === '') {
      setFault('Say where to post: a URL that begins with https:// or http://.')
      return
    }
    if (types.length === 0) {
      setFault('Choose one event or more.')
      return
    }
    const wish: SubscribeRequest = {
      url,
      types: [...types],
      ...(taskPrefix === '' ? {} : { taskPrefix }),
    }
    await order(
      async () => setMade(await client.peek().subscriptions.create(wish)),
      () => 'Subscribed: events are posted from now on',
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
        <small>Events are posted there as CloudEvents, signed as Standard Webhooks.</small>
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
        <span>Tasks whose ids begin with (optional)</span>
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
