/**
 * Tasks that were called open although all that they have left is parked, or waits behind the barrier that this keeps
 * closed. Nothing would touch them until an operator does.
 */
export const stuckTasks = `
UPDATE task SET state = 'stalled'
WHERE state = 'open' AND level_barrier = 1 AND parked_partitions > 0 AND leased_partitions = 0 AND delayed_partitions = 0
  AND NOT EXISTS (SELECT 1 FROM task_step WHERE task_step.task = task.id AND step = 'rerun')
  AND EXISTS (
    SELECT 1 FROM lane WHERE lane.task = task.id AND level = task.open_level AND parked_skipped = 0
      AND lane.parked_partitions > 0 AND lane.ready_partitions = 0 AND lane.held_partitions = 0
  );
`
