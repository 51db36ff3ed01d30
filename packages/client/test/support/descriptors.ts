import type { PartitionDescriptor } from '@baton/client'

export function descriptor(taskId: string, level: number, index: number, records = 10): PartitionDescriptor {
  return {
    taskId,
    computeTableName: 'results.orders',
    partition_name: `${taskId}-${level}-${index}`,
    record_count: records,
    priorityLevel: level,
  }
}

/** This many partitions of level 0. */
export function descriptors(taskId: string, count: number, records = 10): PartitionDescriptor[] {
  return Array.from({ length: count }, (_, index) => descriptor(taskId, 0, index, records))
}
