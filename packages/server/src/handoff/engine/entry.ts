import type { InstanceRole, InstanceTotals } from '@baton/protocol'
import type { AuditRecord } from '../audit.ts'
import { compiled, copierOf, listerOf, namesOf, rowMakerOf } from '../fields.ts'
import type { OutboxEntry } from '../outbox.ts'
import { type PartitionStatus, statusFields, untouched } from '../partition.ts'
import type { StoredState } from '../rules/life-cycle.ts'
import type { LeaseOutcome } from '../rules/settlement.ts'
import type { Tally } from '../rules/task.ts'
import {
  type IndexRangeOfLane,
  laneFields,
  laneTableFields,
  type NextIds,
  type StoredKey,
  type StoredLane,
  type StoredLaneTable,
  type StoredLevel,
  type StoredPace,
  type StoredTableSettings,
  type StoredTask,
  taskFields,
} from '../stored.ts'
import { noTotals, type TotalsAdded } from '../views/queries.ts'
import { type PackedOutbox, packOutbox, unpackOutbox } from './packed-outbox.ts'
import type { DoneWithin } from './throughput.ts'

/**
 * One change of the hand-off state: what every row that one transaction of the engine changed is now.
 * Changes are absolute: of several entries only the last change of a row is needed. `totals` and `throughput`
 * are increments, so the flush adds them and deletes the entry in one transaction of the disk.
 *
 * On disk an entry is one JSON text. Rows are arrays in the order of the lists of fields: most of an entry is
 * partitions, and their field names would take twice the space of their values.
 */
export interface Entry {
  readonly tasks: readonly StoredTask[]
  readonly lanes: readonly StoredLane[]
  readonly levels: readonly StoredLevel[]
  /** Null removes the row. */
  readonly partitions: readonly (readonly [id: number, status: PartitionStatus | null])[]
  readonly keys: readonly (readonly [key: string, row: StoredKey | null])[]
  readonly pace: readonly StoredPace[]
  /** Tasks whose pace rows are deleted. */
  readonly paceOver: readonly number[]
  readonly ranges: readonly IndexRangeOfLane[]
  readonly tables: readonly (readonly [task: number, table: string])[]
  readonly produced: readonly (readonly [task: number, instance: string, at: number])[]
  /** `pausedAt` is absent if the entry neither pauses nor resumes it. */
  readonly instances: readonly (readonly [
    instanceId: string,
    role: InstanceRole,
    at: number,
    pausedAt?: number | null,
  ])[]
  /** Instance counters, to be added to the totals. */
  readonly totals: readonly TotalsAdded[]
  readonly nextIds: NextIds | null
  readonly laneTables: readonly StoredLaneTable[]
  /** Null if the outbox did not change. */
  readonly outbox: OutboxEntry | null
  /** What became done, to be added to the throughput history of its task. */
  readonly throughput: readonly DoneWithin[]
  readonly audit: readonly AuditRecord[]
  /** Null: the default again. */
  readonly tableSettings: readonly (readonly [table: string, row: StoredTableSettings | null])[]
  /** Null: it was cleared. */
  readonly checkpoints: readonly (readonly [partition: number, text: string | null])[]
  /** When the entry was created. Partition times are stored relative to it, which keeps them short. */
  readonly at: number
}

const taskNames = namesOf(taskFields)
const valuesOfTask = listerOf<StoredTask>(taskNames)
const taskOf = rowMakerOf<Omit<StoredTask, 'partitions' | 'records'>>(taskNames)

const laneNames = namesOf(laneFields).filter((field) => !laneFields[field].startsWith('tag'))
const valuesOfLane = listerOf<StoredLane>(laneNames)
const laneOf = rowMakerOf<Pick<StoredLane, (typeof laneNames)[number]>>(laneNames)

const laneTableNames = namesOf(laneTableFields)
const valuesOfLaneTable = listerOf<StoredLaneTable>(laneTableNames)
const laneTableOf = rowMakerOf<StoredLaneTable>(laneTableNames)

/** Pulls are not included: an empty pull writes no entry. */
const totalFields = [
  'partitions',
  'records',
  'done',
  'failed',
  'released',
  'expired',
  'revoked',
  'callBacks',
  'calledBack',
] as const satisfies (keyof InstanceTotals)[]
const valuesOfTotals = listerOf<InstanceTotals>(totalFields)
const totalsOf = rowMakerOf<Pick<InstanceTotals, (typeof totalFields)[number]>>(totalFields)

const tallyStates = ['ready', 'leased', 'delayed', 'parked', 'done', 'cancelled'] as const

export function encodeEntry(entry: Entry): string {
  return JSON.stringify([
    entry.tasks.map((task) => [valuesOfTask(task), packTally(task.partitions), packTally(task.records)]),
    entry.lanes.map((lane) => {
      return [valuesOfLane(lane), lane.tag.toString(), packTally(lane.partitions), packTally(lane.records)]
    }),
    entry.levels.map(({ level, virtual, maxFinishTag }) => [
      level,
      virtual.toString(),
      maxFinishTag.toString(),
    ]),
    entry.partitions.map(([id, status]) => (status === null ? [id] : packStatus(id, status, entry.at))),
    entry.keys,
    entry.pace.map(({ task, second, partitions, records }) => [task, second, partitions, records]),
    entry.paceOver,
    entry.ranges.map(({ lane, first, last }) => [lane, first, last]),
    entry.tables,
    entry.produced,
    entry.instances,
    entry.nextIds,
    entry.outbox === null ? null : packOutbox(entry.outbox, entry.tasks),
    entry.totals.map(({ instanceId, role, at, lostUnlessSeenSince, totals }) => [
      instanceId,
      role,
      at,
      lostUnlessSeenSince,
      ...valuesOfTotals(totals),
    ]),
    entry.laneTables.map(valuesOfLaneTable),
    entry.throughput.map(({ task, level, minute, partitions, records }) => [
      task,
      level,
      minute,
      partitions,
      records,
    ]),
    entry.audit,
    entry.at,
    entry.tableSettings,
    entry.checkpoints,
  ])
}

export function decodeEntry(body: string): Entry {
  // Only encodeEntry writes entries.
  const [
    tasks,
    lanes,
    levels,
    partitions,
    keys,
    pace,
    paceOver,
    ranges,
    tables,
    produced,
    instances,
    nextIds,
    outbox,
    totals,
    laneTables,
    throughput,
    audit,
    at,
    tableSettings,
    checkpoints,
  ] = JSON.parse(body) as [
    [unknown[], number[], number[]][],
    [unknown[], string, number[], number[]][],
    [number, string, string][],
    [number, ...unknown[]][],
    Entry['keys'],
    [number, number, number, number][],
    number[],
    [number, number, number][],
    Entry['tables'],
    Entry['produced'],
    Entry['instances'],
    NextIds | null,
    PackedOutbox | null,
    [string, InstanceRole, number, number | null, ...number[]][],
    unknown[][],
    [number, number, number, number, number][],
    Entry['audit'],
    number,
    Entry['tableSettings'],
    Entry['checkpoints'],
  ]
  const storedTasks = tasks.map(([values, counts, sums]) => ({
    ...taskOf(values),
    partitions: unpackTally(counts),
    records: unpackTally(sums),
  }))
  return {
    tasks: storedTasks,
    lanes: lanes.map(([values, tag, counts, sums]) => ({
      ...laneOf(values),
      tag: BigInt(tag),
      partitions: unpackTally(counts),
      records: unpackTally(sums),
    })),
    levels: levels.map(([level, virtual, maxFinishTag]) => ({
      level,
      virtual: BigInt(virtual),
      maxFinishTag: BigInt(maxFinishTag),
    })),
    partitions: partitions.map((packed) => [
      packed[0],
      packed.length === 1 ? null : unpackStatus(packed, at),
    ]),
    keys,
    pace: pace.map(([task, second, count, records]) => ({ task, second, partitions: count, records })),
    paceOver,
    ranges: ranges.map(([lane, first, last]) => ({ lane, first, last })),
    tables,
    produced,
    instances,
    nextIds,
    outbox: outbox === null ? null : unpackOutbox(outbox, storedTasks, at),
    totals: totals.map(([instanceId, role, at, lostUnlessSeenSince, ...values]) => ({
      instanceId,
      role,
      at,
      lostUnlessSeenSince,
      totals: { ...noTotals(), ...totalsOf(values) },
    })),
    laneTables: laneTables.map(laneTableOf),
    throughput: throughput.map(([task, level, minute, count, records]) => ({
      task,
      level,
      minute,
      partitions: count,
      records,
    })),
    audit,
    tableSettings,
    checkpoints,
    at,
  }
}

const copyTask = copierOf<StoredTask, keyof typeof taskFields>(taskNames)
const copyLane = copierOf<StoredLane, keyof typeof laneFields>(namesOf(laneFields))

/** Includes failures only if they changed: they are much larger than the other fields. */
export const copyOfTask = (task: StoredTask, failuresChanged: boolean): StoredTask => ({
  ...copyTask(task),
  failures: failuresChanged ? task.failures : null,
  durations: task.durations.slice(),
  partitions: { ...task.partitions },
  records: { ...task.records },
})

export const copyOfLane = (lane: StoredLane): StoredLane => ({
  ...copyLane(lane),
  partitions: { ...lane.partitions },
  records: { ...lane.records },
})

export const copyOfLaneTable = copierOf<StoredLaneTable, keyof StoredLaneTable>(namesOf(laneTableFields))

// Enumerations are stored as numbers. Never change the meaning of a number: entries of earlier versions must
// stay readable.
const stateCodes: Readonly<Record<StoredState, number>> = {
  ready: 0,
  leased: 1,
  delayed: 2,
  parked: 3,
  done: 4,
  cancelled: 5,
}
const outcomeCodes: Readonly<Record<LeaseOutcome, number>> = {
  done: 0,
  failed: 1,
  released: 2,
  expired: 3,
  delivered: 4,
  revoked: 5,
}

const codes: { readonly [Field in keyof PartitionStatus]?: Readonly<Record<string, number>> } = {
  state: stateCodes,
  outcome: outcomeCodes,
}

const statusNames = namesOf(statusFields)

/**
 * A status as an array, with times relative to the entry. Most of it is null at the end, which is omitted.
 */
const packStatus: (id: number, status: PartitionStatus, at: number) => unknown[] = compiled(
  'id, status, at',
  `{
    const packed = [id, ${statusNames.map(packed).join(', ')}]
    while (packed[packed.length - 1] === null) packed.pop()
    return packed
  }`,
  { codes },
)

/** The expression that packs a field. */
function packed(field: keyof PartitionStatus): string {
  const value = `status.${field}`
  if (codes[field] !== undefined) return `(${value} === null ? null : codes.${field}[${value}])`
  return statusFields[field] === 'time?' ? `(${value} === null ? null : ${value} - at)` : value
}

const codedNames = Object.fromEntries(
  Object.entries(codes).map(([field, numbers]) => [
    field,
    new Map(Object.entries(numbers).map(([name, code]) => [code, name])),
  ]),
)

/** The reverse of `packStatus`. A field that the entry lacks has its first value. */
const unpackStatus: (packed: readonly unknown[], at: number) => PartitionStatus = compiled(
  'packed, at',
  `({ ${statusNames.map(unpacked).join(', ')} })`,
  { codedNames },
)

/** The property that unpacks a field. */
function unpacked(field: keyof PartitionStatus, nth: number): string {
  const value = `packed[${nth + 1}]`
  const first = JSON.stringify(untouched()[field])
  if (codes[field] !== undefined) return `${field}: codedNames.${field}.get(${value}) ?? ${first}`
  if (statusFields[field] !== 'time?') return `${field}: ${value} ?? ${first}`
  return `${field}: typeof ${value} === 'number' ? ${value} + at : ${first}`
}

const packTally = listerOf<Tally>(tallyStates)

function unpackTally(values: readonly number[]): Tally {
  const [ready = 0, leased = 0, delayed = 0, parked = 0, done = 0, cancelled = 0] = values
  return { ready, held: 0, leased, delayed, parked, done, cancelled }
}
