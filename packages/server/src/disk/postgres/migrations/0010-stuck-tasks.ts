/**
 * Tasks that were called open although all that they have left is parked, or waits behind the barrier that this keeps
 * closed. Nothing would touch them until an operator does; of those that have counts to be folded in, the roller decides.
 */
export const stuckTasks = `
UPDATE baton.task t SET state = 'stalled', changed = nextval('baton.change_order')
WHERE t.state = 'open' AND t.level_barrier AND t.parked_partitions > 0 AND t.leased_partitions = 0
  AND t.delayed_partitions = 0
  AND NOT EXISTS (SELECT FROM baton.count_delta d WHERE d.task = t.id)
  AND NOT EXISTS (SELECT FROM baton.task_step s WHERE s.task = t.id AND s.step = 'rerun')
  AND EXISTS (
    SELECT FROM baton.lane l WHERE l.task = t.id AND l.level = t.open_level AND NOT l.parked_skipped
      AND l.parked_partitions > 0 AND l.ready_partitions = 0 AND l.held_partitions = 0
  );
`
