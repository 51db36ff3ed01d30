import { namesOf, pick } from '../../handoff/fields.ts'
import {
  comparedFields,
  descriptorFields,
  type KnownPartition,
  type PartitionDescriptor,
  type PartitionStatus,
  partitionFields,
  type RareFields,
  rareFields,
  type StoredPartition,
  statusFields,
  untouched,
} from '../../handoff/partition.ts'
import {
  keyFields,
  laneFields,
  laneTableFields,
  levelFields,
  type StoredKey,
  type StoredLane,
  type StoredLaneTable,
  type StoredLevel,
  type StoredTableTime,
  type StoredTask,
  tableTimeFields,
  taskFields,
} from '../../handoff/stored.ts'
import { Table } from './table.ts'

export const tasks = new Table<StoredTask>('task', taskFields, {
  tallied: true,
  declared: { taskId: 'UNIQUE' },
})

export const lanes = new Table<StoredLane>('lane', laneFields, {
  tallied: true,
  defaults: { busyMillis: 0, attemptsDone: 0 },
})

/** New rows are inserted with the descriptor only. */
export const partitions = new Table<StoredPartition>('partition', partitionFields, {
  defaults: untouched(),
})

const isRare: ReadonlySet<string> = new Set(rareFields)
const plainFields = namesOf(descriptorFields).filter((field) => !isRare.has(field))
type PlainDescriptor = Omit<PartitionDescriptor, keyof RareFields>

// Groups of columns of the same table.
export const descriptors = new Table<PartitionDescriptor>('partition', descriptorFields)
export const plainDescriptors = new Table<PlainDescriptor>('partition', pick(descriptorFields, plainFields))
export const knownPartitions = new Table<KnownPartition>('partition', pick(descriptorFields, comparedFields))
export const statuses = new Table<PartitionStatus>('partition', statusFields)

export const levels = new Table<StoredLevel>('level', levelFields)

export const laneTables = new Table<StoredLaneTable>('lane_table', laneTableFields)

export const tableTimes = new Table<StoredTableTime>('table_time', tableTimeFields)

export const keys = new Table<StoredKey>('pull_key', keyFields, { declared: { key: 'PRIMARY KEY' } })
