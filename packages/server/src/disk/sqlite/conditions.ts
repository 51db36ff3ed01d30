import type { Conditions } from '../sql-table.ts'

// Shared by indexes and queries: SQLite uses a partial index only if the query repeats its condition.

export const laneHasWork = 'ready_partitions + leased_partitions + delayed_partitions > 0'
export const taskHas = {
  parked: 'parked_partitions > 0 AND cancelled = 0',
  openWork: '(finished_at IS NULL OR leased_partitions + delayed_partitions > 0 OR staging IS NOT NULL)',
  endedUnpurged: 'finished_at IS NOT NULL AND purged_at IS NULL',
}

export const partitionIs = {
  returned: `state = 'ready' AND due_at IS NOT NULL`,
  inMixedLane: 'in_mixed_lane = 1',
  begun: `(due_at IS NOT NULL OR state = 'parked')`,
  mismatch: 'reported_records IS NOT NULL AND reported_records <> record_count',
}

export const conditions: Conditions = {
  openTasks: `WHERE ${taskHas.openWork}`,
  tasksWithParked: `INDEXED BY task_with_parked WHERE ${taskHas.parked}`,
  tasksToPurge: `WHERE ${taskHas.endedUnpurged}`,
  tasksInState: 'WHERE state = ?1 AND id < ?2',
  lanesWithWork: `WHERE ${laneHasWork}`,
  leasesByEnd: `WHERE state = 'leased'`,
  delayedPartitions: `WHERE state = 'delayed' AND due_at IS NOT NULL`,
  returnedPartitions: `WHERE ${partitionIs.returned}`,
  parkedPartitions: `INDEXED BY partition_parked WHERE state = 'parked'`,
  begunPartitions: `WHERE ${partitionIs.begun}`,
  partitionsInMixedLanes: `INDEXED BY partition_of_table WHERE ${partitionIs.inMixedLane} AND compute_table = ?`,
  partitionsParkedAs: `INDEXED BY partition_parked_as WHERE state = 'parked' AND failure = ?`,
  pendingDeliveries: 'INDEXED BY delivery_pending WHERE pending IS NOT NULL',
  endedInstances: 'WHERE draining = 1',
  throughputOfTask: 'WHERE task = ?1 AND step = ?2 AND at >= ?3 AND at < ?4',
  mismatchesOfTask: `lane CROSS JOIN partition INDEXED BY partition_mismatch
    ON partition.lane = lane.id AND ${partitionIs.mismatch}
    WHERE lane.task = task.id AND task.mismatched > 0 ORDER BY lane.level, partition.idx`,
  leaseEndsAt: 'due_at',
  delayedUntil: 'due_at',
  returnedAt: 'due_at',
}
