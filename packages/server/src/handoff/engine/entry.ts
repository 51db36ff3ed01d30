import type { InstanceRole, InstanceTotals } from '@baton/protocol'
import type { AuditRecord } from '../audit.ts'
import { compiled, copierOf, listerOf, namesOf, rowMakerOf } from '../fields.ts'
import type { OutboxEntry } from '../outbox.ts'
import { type PartitionStatus, statusFields, untouched } from '../partition.ts'
import type { StoredState } from '../rules/life-cycle.ts'
import type { LeaseOutcome } from '../rules/settlement.ts'
import type { Tallies, Tally } from '../rules/task.ts'
import {
  type IndexRangeOfLane,
  laneFields,
  laneTableFields,
  type NextIds,
  rangeFields,
  type StoredKey,
  type StoredLane,
  type StoredLaneTable,
  type StoredLevel,
  type StoredTableSettings,
  type StoredTask,
  taskFields,
} from '../stored.ts'
import { noTotals, type TotalsAdded, totalFields } from '../views/queries.ts'
import { packOutbox, unpackOutbox } from './packed-outbox.ts'
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

/** Rows as lists of the values of their fields. */
const packing = <Row>(names: readonly (keyof Row & string)[]) => ({
  pack: listerOf<Row>(names),
  unpack: rowMakerOf<Row>(names),
})
const taskNames = namesOf(taskFields)
const taskValues = packing<Omit<StoredTask, keyof Tallies>>(taskNames)
const laneValues = packing<Omit<StoredLane, keyof Tallies | 'tag'>>(
  namesOf(laneFields).filter((field) => field !== 'tag'),
)
const laneTableValues = packing<StoredLaneTable>(namesOf(laneTableFields))
const rangeValues = packing<IndexRangeOfLane>(namesOf(rangeFields))
const doneValues = packing<DoneWithin>(['task', 'level', 'minute', 'partitions', 'records'])
/** Pulls are not included: an empty pull writes no entry. */
const totalValues = packing<InstanceTotals>(totalFields.filter((field) => field !== 'pulls'))

/** The parts of an entry, in the order of its text. A new one comes last. */
const parts = [
  ...(['tasks', 'lanes', 'levels', 'partitions', 'keys', 'ranges'] as const),
  ...(['tables', 'produced', 'instances', 'nextIds', 'outbox', 'totals', 'laneTables'] as const),
  ...(['throughput', 'audit', 'at', 'tableSettings', 'checkpoints'] as const),
] satisfies (keyof Entry)[]

type Values = readonly unknown[]

const packedEntry = (entry: Entry) => ({
  ...entry,
  tasks: entry.tasks.map((task) => [taskValues.pack(task), ...packTallies(task)] as const),
  lanes: entry.lanes.map((lane) => [laneValues.pack(lane), `${lane.tag}`, ...packTallies(lane)] as const),
  levels: entry.levels.map(({ level, virtual, maxFinishTag }) => {
    return [level, `${virtual}`, `${maxFinishTag}`] as const
  }),
  partitions: entry.partitions.map(([id, status]) =>
    status === null ? [id] : packStatus(id, status, entry.at),
  ),
  ranges: entry.ranges.map(rangeValues.pack),
  outbox: entry.outbox === null ? null : packOutbox(entry.outbox, entry.tasks),
  totals: entry.totals.map(({ instanceId, role, at, lostUnlessSeenSince, totals }) => {
    return [instanceId, role, at, lostUnlessSeenSince, ...totalValues.pack(totals)] as const
  }),
  laneTables: entry.laneTables.map(laneTableValues.pack),
  throughput: entry.throughput.map(doneValues.pack),
})

export function encodeEntry(entry: Entry): string {
  const packed = packedEntry(entry)
  return JSON.stringify(parts.map((part) => packed[part]))
}

export function decodeEntry(body: string): Entry {
  const given = JSON.parse(body) as Values
  // Only encodeEntry writes entries.
  const packed = Object.fromEntries(
    parts.map((part, place) => [part, given[place]]),
  ) as unknown as ReturnType<typeof packedEntry>
  const { at, outbox } = packed
  const tasks = packed.tasks.map(([values, ...tallies]) => ({
    ...taskValues.unpack(values),
    ...unpackTallies(tallies),
  }))
  return {
    ...packed,
    tasks,
    lanes: packed.lanes.map(([values, tag, ...tallies]) => ({
      ...laneValues.unpack(values),
      tag: BigInt(tag),
      ...unpackTallies(tallies),
    })),
    levels: packed.levels.map(([level, virtual, maxFinishTag]) => ({
      level,
      virtual: BigInt(virtual),
      maxFinishTag: BigInt(maxFinishTag),
    })),
    partitions: packed.partitions.map((values) => [
      values[0] as number,
      values.length === 1 ? null : unpackStatus(values, at),
    ]),
    ranges: packed.ranges.map(rangeValues.unpack),
    outbox: outbox === null ? null : unpackOutbox(outbox, tasks, at),
    totals: packed.totals.map(([instanceId, role, seenAt, lostUnlessSeenSince, ...values]) => ({
      instanceId,
      role,
      at: seenAt,
      lostUnlessSeenSince,
      totals: { ...noTotals(), ...totalValues.unpack(values) },
    })),
    laneTables: packed.laneTables.map(laneTableValues.unpack),
    throughput: packed.throughput.map(doneValues.unpack),
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

// Never change the meaning of a number: entries of earlier versions must stay readable.
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

function unpacked(field: keyof PartitionStatus, nth: number): string {
  const value = `packed[${nth + 1}]`
  const first = JSON.stringify(untouched()[field])
  if (codes[field] !== undefined) return `${field}: codedNames.${field}.get(${value}) ?? ${first}`
  if (statusFields[field] !== 'time?') return `${field}: ${value} ?? ${first}`
  return `${field}: typeof ${value} === 'number' ? ${value} + at : ${first}`
}

const packTally = listerOf<Tally>(Object.keys(stateCodes) as StoredState[])
const packTallies = ({ partitions, records }: Tallies) => [packTally(partitions), packTally(records)] as const

const unpackTallies = (tallies: ReturnType<typeof packTallies>): Tallies => {
  const [partitions, records] = tallies.map((values): Tally => {
    const [ready = 0, leased = 0, delayed = 0, parked = 0, done = 0, cancelled = 0] = values as number[]
    return { ready, held: 0, leased, delayed, parked, done, cancelled }
  })
  return { partitions, records } as Tallies
}
