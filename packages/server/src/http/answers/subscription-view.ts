import type { Delivery, SubscriptionStatus as StatusView, Subscription } from '@baton/protocol'
import type { StoredDelivery, StoredSubscription, SubscriptionStatus } from '../../handoff/outbox.ts'
import { timestampOf, timestampOrNull } from './wire-time.ts'

/** Without its secrets. */
export function viewSubscription(stored: StoredSubscription): Subscription {
  const { id, name = null, url, types, taskPrefix, state, reason, createdAt } = stored
  return {
    id,
    name,
    url,
    types: [...types],
    taskPrefix,
    state: state === 'active' ? 'active' : 'disabled',
    reason,
    createdAt: timestampOf(createdAt),
  }
}

export const viewStatus = ({ subscription, backlog, circuitOpenUntil }: SubscriptionStatus): StatusView => ({
  ...viewSubscription(subscription),
  pending: backlog.pending,
  oldestPendingAt: timestampOrNull(backlog.oldestAt),
  circuitOpenUntil: timestampOrNull(circuitOpenUntil),
})

export function viewDelivery({ event, taskId, at, message, progress }: StoredDelivery): Delivery {
  const { state, attempts, nextAt, attemptedAt, status, error, millis } = progress
  return {
    event,
    id: message.id,
    type: message.type,
    taskId,
    time: timestampOf(at),
    state,
    attempts,
    attemptedAt: timestampOrNull(attemptedAt),
    nextAttemptAt: state === 'pending' ? timestampOf(nextAt) : null,
    status,
    error,
    durationSeconds: millis === null ? null : millis / 1000,
  }
}
