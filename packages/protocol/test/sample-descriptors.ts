import fc from 'fast-check'
import { type PartitionDescriptor, partitionName } from '../src/index.ts'

export function descriptor(changes: Partial<PartitionDescriptor> = {}): PartitionDescriptor {
  return {
    taskId: 'orders-2026-03',
    computeTableName: 'results.orders',
    partition_name: 'orders-2026-03-0-7',
    record_count: 25_000,
    priorityLevel: 0,
    ...changes,
  }
}

/** `count` partitions of one task, on one level, with consecutive indexes. */
export function descriptors(count: number, level = 0): PartitionDescriptor[] {
  return Array.from({ length: count }, (_, index) =>
    descriptor({
      partition_name: partitionName('orders-2026-03', level, index),
      priorityLevel: level,
      record_count: index,
    }),
  )
}

const text = (options: { minLength: number; maxLength: number }) =>
  fc.string({ ...options, unit: 'binary' }).filter((value) => !/\0|^\.{1,2}$/.test(value))

const tablePart = fc
  .string({ minLength: 1, maxLength: 20, unit: 'binary' })
  .filter((value) => !/[.\p{Cc}]/u.test(value) && value.trim() !== '')

/** Any valid array, including tasks with hyphens and digits in their id. */
export const anyCallBackBody: fc.Arbitrary<PartitionDescriptor[]> = fc
  .record({
    taskId: fc.oneof(text({ minLength: 1, maxLength: 30 }), fc.stringMatching(/^[a-z0-9-]{1,20}$/)),
    table: fc.tuple(tablePart, tablePart).map((parts) => parts.join('.')),
    identities: fc.uniqueArray(
      fc.record({
        level: fc.oneof(fc.nat(3), fc.maxSafeNat()),
        index: fc.oneof(fc.nat(50), fc.maxSafeNat()),
        records: fc.oneof(fc.nat(), fc.constant(0)),
        zeros: fc.constantFrom('', '', '', '0', '000'),
      }),
      { minLength: 1, maxLength: 20, selector: ({ level, index }) => `${level}/${index}` },
    ),
  })
  .map(({ taskId, table, identities }) =>
    identities
      .toSorted((a, b) => a.level - b.level)
      .map(({ level, index, records, zeros }) => ({
        taskId,
        computeTableName: table,
        partition_name: `${taskId}-${level}-${zeros}${index}`,
        record_count: records,
        priorityLevel: level,
      })),
  )
