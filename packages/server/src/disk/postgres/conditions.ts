import { MAX_LISTED_MISMATCHES } from '@baton/protocol'
import type { Conditions } from '../sql-table.ts'

export const conditions: Conditions = {
  openTasks: 'WHERE is_open',
  tasksWithParked: 'WHERE has_parked',
  tasksToPurge: 'WHERE purged_at IS NULL',
  // Written as a range so that the planner uses the index by state. With an equality it may read the index by
  // id instead: if nearly all tasks are in one state, it misjudges how many are in another.
  tasksInState: 'WHERE state >= ?1 AND (state, id) < (?1, ?2)',
  lanesWithWork: 'WHERE is_open',
  leasesByEnd: 'WHERE lease_ends_at IS NOT NULL',
  delayedPartitions: 'WHERE delayed_until IS NOT NULL',
  returnedPartitions: 'WHERE returned_at IS NOT NULL',
  parkedPartitions: 'WHERE is_parked',
  begunPartitions: 'WHERE is_begun',
  partitionsInMixedLanes: 'WHERE in_mixed_lane AND compute_table = ?',
  partitionsParkedAs: 'WHERE parked_as = ?',
  pendingDeliveries: 'WHERE pending',
  endedInstances: 'WHERE draining',
  // Written as a range of the primary key. With equalities the planner would use the index by age.
  throughputOfTask: 'WHERE (task, step, at) >= (?1, ?2, ?3) AND (task, step, at) < (?1, ?2, ?4)',
  mismatchesOfTask: `(SELECT id, level FROM baton.lane WHERE lane.task = task.id AND task.mismatched > 0
      ORDER BY level) lane CROSS JOIN LATERAL
    (SELECT * FROM baton.partition WHERE partition.lane = lane.id AND is_mismatch ORDER BY idx
     LIMIT ${MAX_LISTED_MISMATCHES}) partition ORDER BY lane.level, partition.idx`,
  leaseEndsAt: 'lease_ends_at',
  delayedUntil: 'delayed_until',
  returnedAt: 'returned_at',
}
