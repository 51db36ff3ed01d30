import { isLaneOpen } from '../rules/lane-rules.ts'
import { type PartitionState, partitionStates, unfinishedStates } from '../rules/life-cycle.ts'
import type { TaskFacts } from '../rules/task-facts.ts'

/**
 * The stored states behind one that is shown: a waiting partition is called ready or held by
 * whether its lane is open, and of a cancelled task everything unfinished counts as cancelled.
 */
export function storedStates(
  task: Pick<TaskFacts, 'paused' | 'cancelled' | 'levelBarrier' | 'openLevel'>,
  level: number,
  shown: PartitionState | null,
): readonly PartitionState[] {
  if (shown === null) return partitionStates
  if (task.cancelled) {
    if (shown === 'done') return ['done']
    return shown === 'cancelled' ? [...unfinishedStates, 'cancelled'] : []
  }
  if (shown !== 'ready' && shown !== 'held') return [shown]
  return isLaneOpen(task, level) === (shown === 'ready') ? ['ready', 'held'] : []
}
