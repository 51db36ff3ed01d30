/** Stalled: nothing can move until an operator sees to what is parked. */
export const taskStates = ['open', 'paused', 'done', 'stalled', 'cancelled'] as const
export type TaskState = (typeof taskStates)[number]

export const partitionStates = ['ready', 'held', 'leased', 'delayed', 'parked', 'done', 'cancelled'] as const
export type PartitionState = (typeof partitionStates)[number]
