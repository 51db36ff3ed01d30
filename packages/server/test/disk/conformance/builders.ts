import type { Disk, RowChanges } from '../../../src/handoff/disk.ts'
import type { Entry } from '../../../src/handoff/engine/entry.ts'
import { noRowChanges } from '../../../src/handoff/engine/state/unflushed.ts'
import { type PartitionDescriptor, type PartitionStatus, untouched } from '../../../src/handoff/partition.ts'
import { noTallies } from '../../../src/handoff/rules/task.ts'
import type { StoredLane, StoredLaneTable, StoredTask } from '../../../src/handoff/stored.ts'
import { type InstanceDetails, noTotals } from '../../../src/handoff/views/queries.ts'

/** A day in 2026; a round number makes failures readable. */
export const NOW = 1_780_000_000_000

/** Beyond the integers that a JavaScript number can represent exactly. */
export const BEYOND_DOUBLE = 9_007_199_254_740_993n

export const aTask = (id: number, changes: Partial<StoredTask> = {}): StoredTask => ({
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
  firstCallBackAt: NOW,
  lastCallBackAt: NOW,
  finishedAt: null,
  purgedAt: null,
  delivered: 0,
  attemptsWasted: 0,
  reportedDeclared: 0,
  reportedRecords: 0,
  mismatched: 0,
  ...noTallies(),
  partitions: tally({ done: 1 }),
  owners: [],
  reruns: [],
  staging: null,
  settings: null,
  failures: null,
  durations: [],
  stamps: null,
  failureWindow: '',
  ...changes,
})

export const emptyEntry: Entry = {
  tasks: [],
  lanes: [],
  levels: [],
  partitions: [],
  keys: [],
  ranges: [],
  tables: [],
  produced: [],
  instances: [],
  totals: [],
  nextIds: null,
  laneTables: [],
  outbox: null,
  throughput: [],
  audit: [],
  checkpoints: [],
  tableSettings: [],
  at: 0,
}

export const aLaneTable = (
  lane: number,
  table: string,
  changes: Partial<StoredLaneTable> = {},
): StoredLaneTable => ({
  lane,
  table,
  cursor: 0,
  ready: 0,
  returned: 0,
  readyRecords: 0,
  ...changes,
})

export const tablesByName = (...tables: StoredLaneTable[]): Map<string, StoredLaneTable> =>
  new Map(tables.map((row) => [`${row.lane}:${row.table}`, row]))

export const aLane = (id: number, task: number, changes: Partial<StoredLane> = {}): StoredLane => ({
  id,
  task,
  level: 0,
  tag: 0n,
  cursor: 0,
  tail: Number.MAX_SAFE_INTEGER,
  returned: 0,
  table: 'results.orders',
  mixedAfter: null,
  parkedSkipped: false,
  purged: 0,
  purgedRecords: 0,
  busyMillis: 0,
  attemptsDone: 0,
  finishedAt: null,
  ...noTallies(),
  ...changes,
})

export const aRow = (
  id: number,
  lane: number,
  changes: Partial<PartitionDescriptor> = {},
): PartitionDescriptor => ({
  id,
  lane,
  index: id,
  recordCount: 100,
  computeTable: 'results.orders',
  spelling: null,
  extraFields: null,
  traceparent: null,
  calledBackAt: NOW,
  inMixedLane: false,
  ...changes,
})

export const rows = (lane: number, first: number, count: number): PartitionDescriptor[] =>
  Array.from({ length: count }, (_, at) => aRow(first + at, lane))

/** A worker as views show it. */
export const anInstance = (changes: Partial<InstanceDetails> = {}): InstanceDetails => ({
  instanceId: 'w',
  role: 'worker',
  firstSeenAt: NOW,
  lastSeenAt: NOW,
  totals: noTotals(),
  leases: 0,
  lostUnlessSeenSince: null,
  pausedAt: null,
  silentAfterMillis: null,
  leadsSince: null,
  node: null,
  now: NOW,
  tasks: [],
  ...changes,
})

export const status = (changes: Partial<PartitionStatus> = {}): PartitionStatus => ({
  ...untouched(),
  ...changes,
})

export const leased = (changes: Partial<PartitionStatus> = {}): PartitionStatus =>
  status({
    state: 'leased',
    leaseNumber: 1,
    holder: 'w',
    secret: 's'.repeat(16),
    leasedAt: NOW,
    fencingToken: NOW,
    ...changes,
  })

export const rowChanges = (changes: Partial<RowChanges> = {}): RowChanges => ({
  ...noRowChanges(),
  ...changes,
})

/** Writes rows of which no entry is left. */
export const write = (disk: Pick<Disk, 'flush'>, changes: Partial<RowChanges>): Promise<void> =>
  disk.flush(rowChanges(changes), 0)

export const byId = <Image extends { readonly id: number }>(...all: Image[]): Map<number, Image> =>
  new Map(all.map((row) => [row.id, row]))

export const tally = (changes: Partial<StoredTask['partitions']>): StoredTask['partitions'] => ({
  ...noTallies().partitions,
  ...changes,
})

export const ids = (found: readonly { readonly id: number }[]): number[] => found.map(({ id }) => id)
