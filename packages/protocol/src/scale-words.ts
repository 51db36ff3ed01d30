/**
 * How the number of workers was determined: from the measured pace; without one, because none was measured
 * yet; or from an empty backlog.
 */
export const scaleReasons = ['pace', 'no-pace', 'no-backlog'] as const
export type ScaleReason = (typeof scaleReasons)[number]

/**
 * Why more workers would not help: no more partitions can be handed out, or a task reached its `maxLeases`.
 */
export const scaleLimits = ['partitions', 'max-leases'] as const
export type ScaleLimit = (typeof scaleLimits)[number]
