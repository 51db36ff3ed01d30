import type { DeliveryState, InstanceState, PartitionState, TaskState } from '@baton/protocol'

/**
 * The labels of states, in display order. Keyed by the protocol's types, so that the compiler reports a
 * missing one.
 */
export const taskStateWords: Record<TaskState, string> = {
  open: 'Open',
  stalled: 'Stalled',
  paused: 'Paused',
  done: 'Done',
  cancelled: 'Cancelled',
}

export const partitionStateWords: Record<PartitionState, string> = {
  done: 'Done',
  leased: 'Leased',
  delayed: 'Delayed',
  parked: 'Parked',
  ready: 'Ready',
  held: 'Held',
  cancelled: 'Cancelled',
}

export const partitionStateMeanings: Record<PartitionState, string> = {
  done: 'finished',
  leased: 'in the hands of a worker',
  delayed: 'waiting for the end of a back-off',
  parked: 'out of attempts or given up by its worker, waiting for you',
  ready: 'due to be handed out',
  held: 'kept back by a pause or a level barrier',
  cancelled: 'given up with the task',
}

export const instanceStateWords: Record<InstanceState, string> = {
  up: 'Up',
  silent: 'Silent',
  lost: 'Lost',
  draining: 'Draining',
  down: 'Down',
}

export const deliveryStateWords: Record<DeliveryState, string> = {
  pending: 'Pending',
  delivered: 'Delivered',
  failed: 'Failed',
  kept: 'Kept',
}

export const taskStatesAsShown = Object.keys(taskStateWords) as TaskState[]
export const partitionStatesAsShown = Object.keys(partitionStateWords) as PartitionState[]
