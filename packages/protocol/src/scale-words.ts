/** What the number of workers comes from: the measured pace; none was measured yet; or there is nothing to do. */
export const scaleReasons = ['pace', 'no-pace', 'no-backlog'] as const
export type ScaleReason = (typeof scaleReasons)[number]

/** Why more workers would not help: there are no more partitions to hand out, or `maxLeases` of a task is reached. */
export const scaleLimits = ['partitions', 'max-leases'] as const
export type ScaleLimit = (typeof scaleLimits)[number]
