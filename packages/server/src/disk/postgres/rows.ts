import type {
  PartitionDescriptor,
  PartitionStatus,
  StoredKey,
  StoredLane,
  StoredLaneTable,
  StoredLevel,
  StoredPace,
  StoredPartition,
  StoredTableTime,
  StoredTask,
} from '../../handoff/stored.ts'
import { Columns } from './columns.ts'

// One list of columns per table. The tables are created in schema.ts.

export const taskColumns = new Columns<StoredTask>(
  {
    id: 'number',
    taskId: 'text',
    state: 'text',
    paused: 'flag',
    cancelled: 'flag',
    sealed: 'flag',
    expectedPartitions: 'number',
    levelBarrier: 'flag',
    openLevel: 'number',
    generation: 'number',
    firstCallBackAt: 'number',
    lastCallBackAt: 'number',
    finishedAt: 'number',
    purgedAt: 'number',
    delivered: 'number',
    attemptsWasted: 'number',
    reportedDeclared: 'number',
    reportedRecords: 'number',
    mismatched: 'number',
    owners: 'json',
    reruns: 'json',
    staging: 'json',
    settings: 'json',
    failures: 'kept',
    durations: 'json',
  },
  { tallies: true },
)

export const laneColumns = new Columns<StoredLane>(
  {
    id: 'number',
    task: 'number',
    level: 'number',
    tag: 'big',
    retryTag: 'big',
    cursor: 'number',
    tail: 'number',
    released: 'number',
    retries: 'number',
    turn: 'big',
    parkedSkipped: 'flag',
    purged: 'number',
    purgedRecords: 'number',
    busyMillis: 'number',
    attemptsDone: 'number',
  },
  { tallies: true },
)

export const levelColumns = new Columns<StoredLevel>({ level: 'number', virtual: 'big', served: 'big' })

export const laneTableColumns = new Columns<StoredLaneTable>({
  lane: 'number',
  table: { kind: 'text', column: 'name' },
  level: 'number',
  tag: 'big',
  retryTag: 'big',
  turn: 'big',
  cursor: 'number',
  ready: 'number',
  released: 'number',
  retries: 'number',
})

export const tableTimeColumns = new Columns<StoredTableTime>({
  level: 'number',
  table: { kind: 'text', column: 'name' },
  virtual: 'big',
})

const descriptorFields = {
  id: 'number',
  lane: 'number',
  index: { kind: 'number', column: 'idx' },
  recordCount: 'number',
  computeTable: 'text',
  spelling: 'optional',
  calledBackAt: 'number',
  extraFields: 'optional',
  traceparent: 'optional',
} as const

const statusFields = {
  state: 'text',
  line: 'text',
  term: 'number',
  attempts: 'number',
  releases: 'number',
  holder: 'text',
  secret: 'text',
  outcome: 'text',
  dueAt: 'number',
  leasedAt: 'number',
  settledAt: 'number',
  reportedRecords: 'number',
  reason: 'text',
  history: 'json',
} as const

export const descriptorColumns = new Columns<PartitionDescriptor>(descriptorFields)
export const statusColumns = new Columns<PartitionStatus>(statusFields)
export const partitionColumns = new Columns<StoredPartition>({ ...descriptorFields, ...statusFields })

export const keyColumns = new Columns<StoredKey>({ key: 'text', leases: 'json', forgetAt: 'number' })

export const paceColumns = new Columns<StoredPace>({
  task: 'number',
  second: 'number',
  partitions: 'number',
  records: 'number',
})
