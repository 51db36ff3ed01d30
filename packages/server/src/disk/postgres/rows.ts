import { pick } from '../../handoff/fields.ts'
import {
  comparedFields,
  descriptorFields,
  type KnownPartition,
  type PartitionDescriptor,
  type PartitionStatus,
  partitionFields,
  type StoredPartition,
  statusFields,
  untouched,
} from '../../handoff/partition.ts'
import {
  keyFields,
  laneFields,
  laneTableFields,
  levelFields,
  paceFields,
  type StoredKey,
  type StoredLane,
  type StoredLaneTable,
  type StoredLevel,
  type StoredPace,
  type StoredTableTime,
  type StoredTask,
  tableTimeFields,
  taskFields,
} from '../../handoff/stored.ts'
import { Columns } from './columns.ts'

// The columns of each table. The tables are created in schema.ts.

export const taskColumns = new Columns<StoredTask>(taskFields, {
  tallied: true,
  declared: { taskId: 'UNIQUE', durations: "DEFAULT '[]'" },
})

export const laneColumns = new Columns<StoredLane>(laneFields, {
  tallied: true,
  defaults: { busyMillis: 0, attemptsDone: 0 },
})

export const levelColumns = new Columns<StoredLevel>(levelFields)
export const laneTableColumns = new Columns<StoredLaneTable>(laneTableFields)
export const tableTimeColumns = new Columns<StoredTableTime>(tableTimeFields)

/** New rows are inserted with the descriptor only. */
export const partitionColumns = new Columns<StoredPartition>(partitionFields, { defaults: untouched() })

// Groups of columns of the same table.
export const descriptorColumns = new Columns<PartitionDescriptor>(descriptorFields)
export const knownColumns = new Columns<KnownPartition>(pick(descriptorFields, comparedFields))
export const statusColumns = new Columns<PartitionStatus>(statusFields)

export const keyColumns = new Columns<StoredKey>(keyFields, { declared: { key: 'PRIMARY KEY' } })
export const paceColumns = new Columns<StoredPace>(paceFields)
