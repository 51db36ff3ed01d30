import type { BatonClient, Delivery, SubscriptionStatus, WebhookEventType } from '@baton/client'
import { MAX_COUNTED_DELIVERIES, MAX_PAGE_LENGTH, webhookEventTypes } from '@baton/protocol/core'
import type { Arguments, Command } from '../command-line.ts'
import { connect, connectionFlags, cursorFlag, located, moreText } from '../connection.ts'
import { exitCodes, UsageError } from '../errors.ts'
import { ahead, count, since } from '../show/numbers.ts'
import { nameColumn, table, tableWidth } from '../show/table.ts'
import { answer, shown, styled } from '../terminal.ts'

function subscriptionTable(subscriptions: readonly SubscriptionStatus[]): string {
  return table(
    subscriptions,
    [
      { title: 'ID', of: ({ id }) => id },
      {
        title: 'STATE',
        of: ({ state, circuitOpenUntil }) =>
          state === 'active' && circuitOpenUntil !== null
            ? styled('yellow', 'failing')
            : styled(state === 'active' ? 'green' : 'red', state),
      },
      nameColumn('URL', ({ url }) => url ?? '(stored for reading)'),
      { title: 'EVENTS', of: ({ types }) => types.join(' ') },
      { title: 'TASKS', of: ({ taskPrefix }) => (taskPrefix === '' ? 'all' : `${shown(taskPrefix)}…`) },
      {
        title: 'PENDING',
        of: ({ pending }) => `${count(pending)}${pending === MAX_COUNTED_DELIVERIES ? '+' : ''}`,
        align: 'right',
      },
      {
        title: 'OLDEST',
        of: ({ oldestPendingAt }) => (oldestPendingAt === null ? '' : since(oldestPendingAt)),
      },
      { title: 'WHY', of: whyOf },
    ],
    tableWidth(),
  )
}

function whyOf({ reason, circuitOpenUntil }: SubscriptionStatus): string {
  if (reason !== null || circuitOpenUntil === null) return reason ?? ''
  return `the receiver failed too often; next attempt ${ahead(circuitOpenUntil)}`
}

const colours = { delivered: 'green', pending: 'yellow', failed: 'red', kept: 'dim' } as const

function deliveryTable(deliveries: readonly Delivery[]): string {
  return table(
    deliveries,
    [
      { title: 'EVENT', of: ({ event }) => String(event), align: 'right' },
      { title: 'TYPE', of: ({ type }) => type },
      nameColumn('TASK', ({ taskId }) => taskId),
      { title: 'STATE', of: ({ state }) => styled(colours[state], state) },
      { title: 'ATTEMPTS', of: ({ attempts }) => count(attempts), align: 'right' },
      { title: 'HAPPENED', of: ({ time }) => since(time) },
      { title: 'NEXT', of: ({ nextAttemptAt }) => (nextAttemptAt === null ? '' : ahead(nextAttemptAt)) },
      {
        title: 'LAST ANSWER',
        of: ({ status, error }) => shown(error ?? (status === null ? '' : String(status))),
      },
    ],
    tableWidth(),
  )
}

/** The output for programs and for people. */
interface Shown {
  readonly data: object
  readonly text: string
  readonly more?: string | undefined
}

type Verb = (client: BatonClient, given: Arguments) => Promise<Shown>

const verbs: Readonly<Record<string, { readonly operands: string; readonly run: Verb }>> = {
  list: {
    operands: '',
    run: async (client) => {
      const found = await client.subscriptions.list()
      const text = found.length === 0 ? 'no subscriptions yet' : subscriptionTable(found)
      return { data: { subscriptions: found }, text }
    },
  },
  add: {
    operands: 'URL',
    run: async (client, given) => {
      const url = given.operands[1] ?? ''
      const types = given.texts('type') as readonly WebhookEventType[]
      const taskPrefix = given.text('task-prefix')
      const request = {
        url,
        ...(types.length === 0 ? {} : { types: [...types] }),
        ...(taskPrefix === undefined ? {} : { taskPrefix }),
      }
      const made = await client.subscriptions
        .create(request)
        .catch(located({ placeOf: (pointer) => places[pointer] ?? '' }))
      return { data: made, text: `${made.id}\nsecret: ${made.secret} (shown only once)` }
    },
  },
  remove: {
    operands: 'ID',
    run: async (client, given) => {
      const removed = await client.subscriptions.remove(idOf(given))
      return { data: removed, text: `${removed.id} is removed` }
    },
  },
  enable: {
    operands: 'ID',
    run: async (client, given) => {
      const enabled = await client.subscriptions.enable(idOf(given))
      return { data: enabled, text: `${enabled.id} is ${enabled.state}` }
    },
  },
  'rotate-secret': {
    operands: 'ID',
    run: async (client, given) => {
      const overlapSeconds = given.number('overlap')
      const request = overlapSeconds === undefined ? {} : { overlapSeconds }
      const rotated = await client.subscriptions.rotateSecret(idOf(given), request)
      return { data: rotated, text: `secret: ${rotated.secret} (shown only once)` }
    },
  },
  deliveries: {
    operands: 'ID',
    run: async (client, given) => {
      const limit = given.numberOrDefault('limit')
      const page = await client.subscriptions.deliveries(idOf(given), { limit, cursor: given.text('cursor') })
      const text = page.deliveries.length === 0 ? 'no events yet' : deliveryTable(page.deliveries)
      return { data: page, text, more: page.next === null ? undefined : moreText('--limit', page.next) }
    },
  },
  redeliver: {
    operands: 'ID EVENT',
    run: async (client, given) => {
      const event = given.operands[2] ?? ''
      if (!/^\d{1,16}$/.test(event))
        throw new UsageError(`EVENT must be a number, got ${JSON.stringify(event)}`)
      const delivery = await client.subscriptions.redeliver(idOf(given), Number(event))
      return { data: delivery, text: `event ${event} is ${delivery.state}` }
    },
  },
}

const places: Readonly<Record<string, string>> = { '/url': 'the URL', '/taskPrefix': '--task-prefix' }

const idOf = (given: Arguments): string => given.operands[1] ?? ''

export const subscriptions: Command = {
  operands: '[VERB …]',
  operandCount: [0, 3],
  details: `Shows and changes webhook subscriptions:
  baton subscriptions                       list all subscriptions
  baton subscriptions add URL               send events to this URL; prints the signing secret
  baton subscriptions remove ID             remove a subscription
  baton subscriptions enable ID             enable a subscription that was disabled
  baton subscriptions rotate-secret ID      create a new secret; the previous one is also used for a while
  baton subscriptions deliveries ID         list deliveries, newest first
  baton subscriptions redeliver ID EVENT    send an event again
Events: ${webhookEventTypes.join(', ')}.`,
  flags: {
    type: {
      kind: 'text',
      placeholder: 'EVENT',
      repeatable: true,
      choices: webhookEventTypes,
      otherwise: 'all events',
      description: 'with add: only these events',
    },
    'task-prefix': {
      kind: 'text',
      placeholder: 'TEXT',
      description: 'with add: only tasks whose id begins with this prefix',
    },
    overlap: {
      kind: 'number',
      placeholder: 'SECONDS',
      otherwise: 'a day',
      description: 'with rotate-secret: how long events are also signed with the previous secret',
    },
    limit: {
      kind: 'number',
      placeholder: 'N',
      minimum: 1,
      maximum: MAX_PAGE_LENGTH,
      default: 20,
      description: 'with deliveries: maximum number of deliveries',
    },
    cursor: cursorFlag,
    ...connectionFlags,
  },
  examples: [
    {
      line: 'baton subscriptions add https://pipeline.example/hooks --type task.done --type task.stalled',
      says: 'Notify a pipeline',
    },
    { line: 'baton subscriptions deliveries sub_Zk3vU0f1pQ7cXw2d', says: 'The deliveries of a subscription' },
  ],
  run: async (given) => {
    const [name = 'list', ...operands] = given.operands
    const verb = Object.hasOwn(verbs, name) ? verbs[name] : undefined
    if (verb === undefined)
      throw new UsageError(`${JSON.stringify(name)} must be one of ${Object.keys(verbs).join(', ')}`)
    const expected = verb.operands === '' ? 0 : verb.operands.split(' ').length
    if (operands.length !== expected)
      throw new UsageError(
        expected === 0
          ? `${JSON.stringify(operands[0])} is an unexpected operand of subscriptions ${name}`
          : `subscriptions ${name} requires ${verb.operands}`,
      )
    const { data, text, more } = await verb.run(connect(given), given)
    answer(given, data, () => text, more)
    return exitCodes.ok
  },
}
