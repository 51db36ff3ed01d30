import type { DeliveryState, InstanceState, PartitionState, TaskState } from '@baton/protocol'
import { deliveryStateWords, instanceStateWords, partitionStateWords, taskStateWords } from './states.ts'

/** A state as a word and a colour, because colour must not be the only sign. */
export function TaskBadge({ state }: { state: TaskState }) {
  return <span class={`badge task-${state}`}>{taskStateWords[state]}</span>
}

export function PartitionBadge({ state }: { state: PartitionState }) {
  return <span class={`badge partition-${state}`}>{partitionStateWords[state]}</span>
}

export function InstanceBadge({ state }: { state: InstanceState }) {
  return <span class={`badge instance-${state}`}>{instanceStateWords[state]}</span>
}

export function DeliveryBadge({ state }: { state: DeliveryState }) {
  return <span class={`badge delivery-${state}`}>{deliveryStateWords[state]}</span>
}
