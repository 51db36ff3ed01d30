/** Stalled: nothing can move until an operator sees to what is parked. */
export const taskStates = ['open', 'paused', 'done', 'stalled', 'cancelled'] as const
export type TaskState = (typeof taskStates)[number]

/** Of tasks that have something left to do; those first whose partitions workers could take. */
export const unfinishedTaskStates = ['open', 'stalled', 'paused'] as const satisfies readonly TaskState[]
export type UnfinishedTaskState = (typeof unfinishedTaskStates)[number]

export function isUnfinishedState(state: TaskState): state is UnfinishedTaskState {
  return unfinishedTaskStates.some((one) => one === state)
}

export const partitionStates = ['ready', 'held', 'leased', 'delayed', 'parked', 'done', 'cancelled'] as const
export type PartitionState = (typeof partitionStates)[number]
