import type { Appended, Images } from '../../../src/handoff/disk.ts'
import { emptyTally } from '../../../src/handoff/rules/tally.ts'
import type { PartitionDescriptor, StoredLane, StoredTask } from '../../../src/handoff/stored.ts'

export const noImages = (): Images => ({
  tasks: new Map(),
  lanes: new Map(),
  levels: new Map(),
  laneTables: new Map(),
  tableTimes: new Map(),
  partitions: new Map(),
  keys: new Map(),
  pace: new Map(),
  ranges: [],
  tables: new Map(),
  produced: new Map(),
  instances: new Map(),
  nextIds: null,
})

export const entry = (number: number, given: Partial<Appended> = {}): Appended => ({
  number,
  body: `entry ${number}`,
  newRows: [],
  newKeys: [],
  ...given,
})

export const row = (id: number, given: Partial<PartitionDescriptor> = {}): PartitionDescriptor => ({
  id,
  lane: 1,
  index: id,
  recordCount: 10,
  computeTable: 'sales.orders',
  spelling: null,
  calledBackAt: 1000,
  ...given,
})

export const task = (id: number, given: Partial<StoredTask> = {}): StoredTask => ({
  id,
  taskId: `task-${id}`,
  state: 'open',
  paused: false,
  cancelled: false,
  sealed: false,
  expectedPartitions: null,
  levelBarrier: false,
  openLevel: null,
  generation: 1,
  firstCallBackAt: 1000,
  lastCallBackAt: 1000,
  finishedAt: null,
  purgedAt: null,
  delivered: 0,
  attemptsWasted: 0,
  reportedDeclared: 0,
  reportedRecords: 0,
  mismatched: 0,
  partitions: { ...emptyTally(), ready: 1 },
  records: { ...emptyTally(), ready: 10 },
  reruns: [],
  staging: null,
  settings: null,
  ...given,
})

export const lane = (id: number, given: Partial<StoredLane> = {}): StoredLane => ({
  id,
  task: 1,
  level: 0,
  tag: 0n,
  retryTag: 0n,
  cursor: 0,
  tail: 0,
  released: 0,
  retries: 0,
  turn: null,
  parkedSkipped: false,
  purged: 0,
  purgedRecords: 0,
  partitions: emptyTally(),
  records: emptyTally(),
  ...given,
})
