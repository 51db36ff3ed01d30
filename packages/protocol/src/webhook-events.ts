/** What a subscription can be told of. */
export const webhookEventTypes = [
  'task.done',
  'task.stalled',
  'task.cancelled',
  'level.done',
  'partition.parked',
] as const
export type WebhookEventType = (typeof webhookEventTypes)[number]

export const subscriptionStates = ['active', 'disabled'] as const
export type SubscriptionState = (typeof subscriptionStates)[number]

/** `kept`: the subscription has no URL; its events wait to be read. */
export const deliveryStates = ['pending', 'delivered', 'failed', 'kept'] as const
export type DeliveryState = (typeof deliveryStates)[number]
