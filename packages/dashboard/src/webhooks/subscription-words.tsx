import type { SubscriptionStatus } from '@baton/protocol'
import { MAX_COUNTED_DELIVERIES, webhookEventTypes } from '@baton/protocol/core'
import { atLeast, exact } from '../parts/numbers.ts'

/**
 * The state of a subscription. After too many failures its circuit is open, and nothing is sent for a while.
 */
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

/** The receiver of its events. */
export const receiverOf = ({ url }: SubscriptionStatus): string => url ?? 'Kept to be read'
