import {
  type PartitionDescriptor,
  type PartitionStatus,
  type StoredKey,
  type StoredLane,
  type StoredLaneTable,
  type StoredLevel,
  type StoredPartition,
  type StoredTableTime,
  type StoredTask,
  untouched,
} from '../../handoff/stored.ts'
import { type Column, type Columns, Table } from './table.ts'

// The column of each field. The schema, the statements and the readers are generated from these lists.

export const tasks = new Table<StoredTask>(
  'task',
  {
    id: ['id', 'key'],
    taskId: ['task_id', 'text', 'UNIQUE'],
    state: ['state', 'text'],
    paused: ['paused', 'flag'],
    cancelled: ['cancelled', 'flag'],
    sealed: ['sealed', 'flag'],
    expectedPartitions: ['expected_partitions', 'integer?'],
    levelBarrier: ['level_barrier', 'flag'],
    openLevel: ['open_level', 'integer?'],
    generation: ['generation', 'integer'],
    firstCallBackAt: ['first_call_back_at', 'integer'],
    lastCallBackAt: ['last_call_back_at', 'integer'],
    finishedAt: ['finished_at', 'integer?'],
    purgedAt: ['purged_at', 'integer?'],
    delivered: ['delivered', 'integer'],
    attemptsWasted: ['attempts_wasted', 'integer'],
    reportedDeclared: ['reported_declared', 'integer'],
    reportedRecords: ['reported_records', 'integer'],
    mismatched: ['mismatched', 'integer'],
    owners: ['owners', 'list?'],
    reruns: ['reruns', 'list?'],
    staging: ['staging', 'json?'],
    settings: ['settings', 'json?'],
    failures: ['failures', 'kept?'],
    durations: ['durations', 'list?'],
  },
  true,
)

export const lanes = new Table<StoredLane>(
  'lane',
  {
    id: ['id', 'key'],
    task: ['task', 'integer'],
    level: ['level', 'integer'],
    tag: ['tag', 'tag'],
    retryTag: ['retry_tag', 'tag'],
    cursor: ['cursor', 'integer'],
    tail: ['tail', 'integer'],
    released: ['released', 'integer'],
    retries: ['retries', 'integer'],
    turn: ['turn', 'tag?'],
    parkedSkipped: ['parked_skipped', 'flag'],
    purged: ['purged', 'integer'],
    purgedRecords: ['purged_records', 'integer'],
    busyMillis: ['busy_millis', 'integer', 'DEFAULT 0'],
    attemptsDone: ['attempts_done', 'integer', 'DEFAULT 0'],
  },
  true,
)

/** The fields that nearly all call-backs have. */
export type PlainDescriptor = Omit<PartitionDescriptor, 'extraFields' | 'traceparent'>

const plainDescriptor: Columns<PlainDescriptor> = {
  id: ['id', 'key'],
  lane: ['lane', 'integer'],
  index: ['idx', 'integer'],
  recordCount: ['record_count', 'integer'],
  computeTable: ['compute_table', 'text'],
  spelling: ['spelling', 'text?'],
  calledBackAt: ['called_back_at', 'integer'],
}

const descriptor: Columns<PartitionDescriptor> = {
  ...plainDescriptor,
  extraFields: ['extra_fields', 'text?'],
  traceparent: ['traceparent', 'text?'],
}

const status: Columns<PartitionStatus> = {
  state: ['state', 'text'],
  line: ['line', 'text'],
  term: ['term', 'integer'],
  attempts: ['attempts', 'integer'],
  releases: ['releases', 'integer'],
  holder: ['holder', 'text?'],
  secret: ['secret', 'text'],
  outcome: ['outcome', 'text?'],
  dueAt: ['due_at', 'integer?'],
  leasedAt: ['leased_at', 'integer?'],
  settledAt: ['settled_at', 'integer?'],
  reportedRecords: ['reported_records', 'integer?'],
  reason: ['reason', 'text?'],
  history: ['history', 'json?'],
}

/**
 * New rows are inserted with the descriptor only; the columns of the status have defaults for an untouched
 * partition.
 */
function withDefaults(columns: Columns<PartitionStatus>): Columns<PartitionStatus> {
  const start: Record<string, unknown> = { ...untouched() }
  const withDefault = ([field, [name, kind]]: [string, Column]): [string, Column] => {
    const value = start[field]
    if (value === null) return [field, [name, kind]]
    return [field, [name, kind, `DEFAULT ${typeof value === 'number' ? value : `'${value}'`}`]]
  }
  return Object.fromEntries(Object.entries(columns).map(withDefault)) as Columns<PartitionStatus>
}

export const partitions = new Table<StoredPartition>('partition', {
  ...descriptor,
  ...withDefaults(status),
})
/** Two groups of columns of the same table. */
export const descriptors = new Table<PartitionDescriptor>('partition', descriptor)
export const plainDescriptors = new Table<PlainDescriptor>('partition', plainDescriptor)
export const statuses = new Table<PartitionStatus>('partition', status)

export const levels = new Table<StoredLevel>('level', {
  level: ['level', 'key'],
  virtual: ['virtual', 'tag'],
  served: ['served', 'tag'],
})

export const laneTables = new Table<StoredLaneTable>('lane_table', {
  lane: ['lane', 'integer'],
  table: ['name', 'text'],
  level: ['level', 'integer'],
  tag: ['tag', 'tag'],
  retryTag: ['retry_tag', 'tag'],
  turn: ['turn', 'tag?'],
  cursor: ['cursor', 'integer'],
  ready: ['ready', 'integer'],
  released: ['released', 'integer'],
  retries: ['retries', 'integer'],
})

export const tableTimes = new Table<StoredTableTime>('table_time', {
  level: ['level', 'integer'],
  table: ['name', 'text'],
  virtual: ['virtual', 'tag'],
})

export const keys = new Table<StoredKey>('pull_key', {
  key: ['key', 'text', 'PRIMARY KEY'],
  leases: ['leases', 'json'],
  forgetAt: ['forget_at', 'integer'],
})
