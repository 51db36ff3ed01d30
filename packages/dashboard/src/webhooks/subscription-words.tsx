import type { SubscriptionStatus } from '@baton/protocol'
import { MAX_COUNTED_DELIVERIES, webhookEventTypes } from '@baton/protocol/core'
import { atLeast, exact } from '../parts/numbers.ts'

/** A receiver that fails too often is left alone for a while: its circuit is open. */
export function SubscriptionBadge({
  subscription: { state, circuitOpenUntil },
}: {
  subscription: SubscriptionStatus
}) {
  if (state === 'disabled') return <span class="badge subscription-disabled">Disabled</span>
  if (circuitOpenUntil !== null) return <span class="badge subscription-failing">Circuit open</span>
  return <span class="badge subscription-active">Active</span>
}

export const pendingOf = ({ pending }: SubscriptionStatus): string =>
  atLeast(exact(pending), pending < MAX_COUNTED_DELIVERIES)

export const typesOf = ({ types }: SubscriptionStatus): string =>
  types.length === webhookEventTypes.length ? 'all events' : types.join(', ')

export const tasksOf = ({ taskPrefix }: SubscriptionStatus): string =>
  taskPrefix === '' ? 'all tasks' : `${taskPrefix}…`

/** Where its events go. */
export const receiverOf = ({ url }: SubscriptionStatus): string => url ?? 'Kept to be read'
