import type { Delivery, SubscriptionStatus } from '@baton/client'
import { MAX_COUNTED_DELIVERIES } from '@baton/protocol/without-schemas'
import { styled } from '../terminal.ts'
import { ahead, count, since } from './numbers.ts'
import { nameColumn, shown, table, tableWidth } from './table.ts'

export function subscriptionTable(
  subscriptions: readonly SubscriptionStatus[],
  width = tableWidth(),
): string {
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
      nameColumn('URL', ({ url }) => url ?? '(kept to be read)'),
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
    width,
  )
}

function whyOf({ reason, circuitOpenUntil }: SubscriptionStatus): string {
  if (reason !== null || circuitOpenUntil === null) return reason ?? ''
  return `the receiver failed too often; next attempt ${ahead(circuitOpenUntil)}`
}

const colours = { delivered: 'green', pending: 'yellow', failed: 'red', kept: 'dim' } as const

export function deliveryTable(deliveries: readonly Delivery[], width = tableWidth()): string {
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
    width,
  )
}
