import type { Delivery, Subscription } from '@baton/protocol'
import type { StoredDelivery, StoredSubscription } from '../../handoff/outbox.ts'
import { timestampOf, timestampOrNull } from './wire-time.ts'

/** Without its secrets. */
export function viewSubscription(stored: StoredSubscription): Subscription {
  const { id, url, types, taskPrefix, state, reason, createdAt } = stored
  return {
    id,
    url,
    types: [...types],
    taskPrefix,
    state: state === 'active' ? 'active' : 'disabled',
    reason,
    createdAt: timestampOf(createdAt),
  }
}

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
