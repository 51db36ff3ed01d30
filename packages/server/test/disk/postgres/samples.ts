import type { Appended } from '../../../src/handoff/disk.ts'
import type { PartitionDescriptor } from '../../../src/handoff/partition.ts'
import type { StoredLane, StoredTask } from '../../../src/handoff/stored.ts'
import { aLane, aRow, aTask, tally } from '../conformance/builders.ts'

// Samples of the conformance suite, all on one lane of one task whose rows do not count yet.

export { rowChanges as noRowChanges } from '../conformance/builders.ts'

export const entry = (number: number, given: Partial<Appended> = {}): Appended => ({
  number,
  body: `entry ${number}`,
  newRows: [],
  newKeys: [],
  ...given,
})

export const row = (id: number, given: Partial<PartitionDescriptor> = {}): PartitionDescriptor =>
  aRow(id, 1, given)

export const task = (id: number, given: Partial<StoredTask> = {}): StoredTask =>
  aTask(id, { partitions: tally({ ready: 1 }), records: tally({ ready: 100 }), ...given })

export const lane = (id: number, given: Partial<StoredLane> = {}): StoredLane =>
  aLane(id, 1, { tail: 0, ...given })
