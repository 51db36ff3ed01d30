import type { InstanceRole, InstanceTotals } from '@baton/protocol'
import type { OutboxEntry } from '../outbox.ts'
import { emptyTally, type Tally } from '../rules/task-facts.ts'
import type {
  IndexRangeOfLane,
  Line,
  NextIds,
  PartitionStatus,
  StoredKey,
  StoredLane,
  StoredLaneTable,
  StoredLevel,
  StoredOutcome,
  StoredPace,
  StoredState,
  StoredTableTime,
  StoredTask,
} from '../stored.ts'
import { noTotals, type TotalsAdded } from '../views/records.ts'
import { type PackedOutbox, packOutbox, unpackOutbox } from './outbox-changes.ts'
import type { DoneWithin } from './throughput.ts'

/**
 * One change of the hand-off state: the after-image of every row that a batch changed. Images are absolute,
 * so applying an entry twice is safe, and of several entries only the last image of a row is needed.
 *
 * On disk an entry is one JSON text. Rows are arrays in the order of the field lists below: most of an entry
 * is partitions, and their field names would take twice the space of their values.
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
  readonly instances: readonly (readonly [instanceId: string, role: InstanceRole, at: number])[]
  /** Instance counters, to be added to the totals. */
  readonly totals: readonly TotalsAdded[]
  readonly nextIds: NextIds | null
  readonly laneTables: readonly StoredLaneTable[]
  readonly tableTimes: readonly StoredTableTime[]
  /** Null if the outbox did not change. */
  readonly outbox: OutboxEntry | null
  /** What became done, to be added to the throughput history of its task. */
  readonly throughput: readonly DoneWithin[]
  /** When the entry was created. Partition times are stored relative to it, which keeps them short. */
  readonly at: number
}

const taskFields = [
  'id',
  'taskId',
  'state',
  'paused',
  'cancelled',
  'sealed',
  'expectedPartitions',
  'levelBarrier',
  'openLevel',
  'generation',
  'firstCallBackAt',
  'lastCallBackAt',
  'finishedAt',
  'purgedAt',
  'delivered',
  'attemptsWasted',
  'reportedDeclared',
  'reportedRecords',
  'mismatched',
  'owners',
  'reruns',
  'staging',
  'settings',
  'failures',
  'durations',
] as const satisfies (keyof StoredTask)[]

const laneFields = [
  'id',
  'task',
  'level',
  'cursor',
  'tail',
  'released',
  'retries',
  'parkedSkipped',
  'purged',
  'purgedRecords',
  'busyMillis',
  'attemptsDone',
] as const satisfies (keyof StoredLane)[]

const statusFields = [
  'state',
  'line',
  'term',
  'attempts',
  'releases',
  'holder',
  'secret',
  'outcome',
  'dueAt',
  'leasedAt',
  'settledAt',
  'reportedRecords',
  'reason',
  'history',
] as const satisfies (keyof PartitionStatus)[]

/** Pulls are not included: an empty pull writes no entry. */
const totalFields = [
  'partitions',
  'records',
  'done',
  'failed',
  'released',
  'callBacks',
  'calledBack',
] as const satisfies (keyof InstanceTotals)[]

const tallyStates = ['ready', 'leased', 'delayed', 'parked', 'done', 'cancelled'] as const

export function encodeEntry(entry: Entry): string {
  return JSON.stringify([
    entry.tasks.map((task) => [pick(task, taskFields), packTally(task.partitions), packTally(task.records)]),
    entry.lanes.map((lane) => [
      pick(lane, laneFields),
      lane.tag.toString(),
      lane.retryTag.toString(),
      lane.turn === null ? null : lane.turn.toString(),
      packTally(lane.partitions),
      packTally(lane.records),
    ]),
    entry.levels.map(({ level, virtual, served }) => [level, virtual.toString(), served.toString()]),
    entry.partitions.map(([id, status]) => (status === null ? [id] : packStatus(id, status, entry.at))),
    entry.keys,
    entry.pace.map(({ task, second, partitions, records }) => [task, second, partitions, records]),
    entry.paceOver,
    entry.ranges.map(({ lane, first, last }) => [lane, first, last]),
    entry.tables,
    entry.produced,
    entry.instances,
    entry.nextIds,
    entry.outbox === null ? null : packOutbox(entry.outbox),
    entry.totals.map(({ instanceId, role, at, totals }) => [
      instanceId,
      role,
      at,
      ...pick(totals, totalFields),
    ]),
    entry.laneTables.map((row) => [
      row.lane,
      row.table,
      row.level,
      row.tag.toString(),
      row.retryTag.toString(),
      row.turn === null ? null : row.turn.toString(),
      row.cursor,
      row.ready,
      row.released,
      row.retries,
    ]),
    entry.tableTimes.map(({ level, table, virtual }) => [level, table, virtual.toString()]),
    entry.throughput.map(({ task, level, minute, partitions, records }) => [
      task,
      level,
      minute,
      partitions,
      records,
    ]),
    entry.at,
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
    tableTimes,
    // Added after schema 7 of SQLite and schema 12 of PostgreSQL.
    throughput = [],
    // Entries written before this field existed have absolute times.
    at = 0,
  ] = JSON.parse(body) as [
    [unknown[], number[], number[]][],
    [unknown[], string, string, string | null, number[], number[]][],
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
    [string, InstanceRole, number, ...number[]][],
    [number, string, number, string, string, string | null, number, number, number, number][],
    [number, string, string][],
    [number, number, number, number, number][]?,
    number?,
  ]
  return {
    tasks: tasks.map(([values, counts, sums]) => ({
      ...(unpick(values, taskFields) as Omit<StoredTask, 'partitions' | 'records'>),
      partitions: unpackTally(counts),
      records: unpackTally(sums),
    })),
    lanes: lanes.map(([values, tag, retryTag, turn, counts, sums]) => ({
      ...(unpick(values, laneFields) as Pick<StoredLane, (typeof laneFields)[number]>),
      tag: BigInt(tag),
      retryTag: BigInt(retryTag),
      turn: turn === null ? null : BigInt(turn),
      partitions: unpackTally(counts),
      records: unpackTally(sums),
    })),
    levels: levels.map(([level, virtual, served]) => ({
      level,
      virtual: BigInt(virtual),
      served: BigInt(served),
    })),
    partitions: partitions.map(([id, ...values]) => [
      id,
      values.length === 0 ? null : unpackStatus(values, at),
    ]),
    keys,
    pace: pace.map(([task, second, count, records]) => ({ task, second, partitions: count, records })),
    paceOver,
    ranges: ranges.map(([lane, first, last]) => ({ lane, first, last })),
    tables,
    produced,
    instances,
    nextIds,
    outbox: outbox === null ? null : unpackOutbox(outbox, at),
    totals: totals.map(([instanceId, role, at, ...values]) => ({
      instanceId,
      role,
      at,
      totals: { ...noTotals(), ...unpick(values, totalFields) },
    })),
    laneTables: laneTables.map(
      ([lane, table, level, tag, retryTag, turn, cursor, ready, released, retries]) => ({
        lane,
        table,
        level,
        tag: BigInt(tag),
        retryTag: BigInt(retryTag),
        turn: turn === null ? null : BigInt(turn),
        cursor,
        ready,
        released,
        retries,
      }),
    ),
    tableTimes: tableTimes.map(([level, table, virtual]) => ({ level, table, virtual: BigInt(virtual) })),
    throughput: throughput.map(([task, level, minute, count, records]) => ({
      task,
      level,
      minute,
      partitions: count,
      records,
    })),
    at,
  }
}

/** Copies the current status. */
export const imageOfStatus = (status: PartitionStatus): PartitionStatus => ({
  state: status.state,
  line: status.line,
  term: status.term,
  attempts: status.attempts,
  releases: status.releases,
  holder: status.holder,
  secret: status.secret,
  outcome: status.outcome,
  dueAt: status.dueAt,
  leasedAt: status.leasedAt,
  settledAt: status.settledAt,
  reportedRecords: status.reportedRecords,
  reason: status.reason,
  history: status.history,
})

/** Includes failures only if they changed: they are much larger than the other fields. */
export const imageOfTask = (task: StoredTask, failuresChanged: boolean): StoredTask => ({
  id: task.id,
  taskId: task.taskId,
  state: task.state,
  paused: task.paused,
  cancelled: task.cancelled,
  sealed: task.sealed,
  expectedPartitions: task.expectedPartitions,
  levelBarrier: task.levelBarrier,
  openLevel: task.openLevel,
  generation: task.generation,
  firstCallBackAt: task.firstCallBackAt,
  lastCallBackAt: task.lastCallBackAt,
  finishedAt: task.finishedAt,
  purgedAt: task.purgedAt,
  delivered: task.delivered,
  attemptsWasted: task.attemptsWasted,
  reportedDeclared: task.reportedDeclared,
  reportedRecords: task.reportedRecords,
  mismatched: task.mismatched,
  partitions: { ...task.partitions },
  records: { ...task.records },
  owners: task.owners,
  reruns: task.reruns,
  staging: task.staging,
  settings: task.settings,
  failures: failuresChanged ? task.failures : null,
  durations: task.durations.slice(),
})

export const imageOfLane = (lane: StoredLane): StoredLane => ({
  id: lane.id,
  task: lane.task,
  level: lane.level,
  tag: lane.tag,
  retryTag: lane.retryTag,
  cursor: lane.cursor,
  tail: lane.tail,
  released: lane.released,
  retries: lane.retries,
  turn: lane.turn,
  parkedSkipped: lane.parkedSkipped,
  purged: lane.purged,
  purgedRecords: lane.purgedRecords,
  busyMillis: lane.busyMillis,
  attemptsDone: lane.attemptsDone,
  partitions: { ...lane.partitions },
  records: { ...lane.records },
})

export const imageOfLaneTable = (row: StoredLaneTable): StoredLaneTable => ({
  lane: row.lane,
  table: row.table,
  level: row.level,
  tag: row.tag,
  retryTag: row.retryTag,
  turn: row.turn,
  cursor: row.cursor,
  ready: row.ready,
  released: row.released,
  retries: row.retries,
})

const pick = <Row>(row: Row, fields: readonly (keyof Row)[]): unknown[] => fields.map((field) => row[field])

/** A plain loop without intermediate pairs: every task of every entry passes through here. */
function unpick(values: readonly unknown[], fields: readonly string[]): object {
  const row: Record<string, unknown> = {}
  for (let at = 0; at < fields.length; at += 1) row[fields[at] as string] = values[at] ?? null
  return row
}

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
const lineCodes: Readonly<Record<Line, number>> = { fresh: 0, released: 1, retry: 2 }
const outcomeCodes: Readonly<Record<StoredOutcome, number>> = {
  done: 0,
  failed: 1,
  released: 2,
  expired: 3,
  delivered: 4,
}

/** Earlier versions stored names instead of numbers. */
function namesOf<Name extends string>(
  codes: Readonly<Record<Name, number>>,
): (written: Name | number) => Name {
  const names: Name[] = []
  for (const name of Object.keys(codes) as Name[]) names[codes[name]] = name
  return (written) => (typeof written === 'number' ? (names[written] as Name) : written)
}

const stateOf = namesOf(stateCodes)
const lineOf = namesOf(lineCodes)
const outcomeOf = namesOf(outcomeCodes)

/**
 * Packs fields in the order of `statusFields`, with times relative to the entry. Written out by hand because
 * most of an entry is partitions. The last three fields are omitted if all are null, as they are for most
 * partitions.
 */
function packStatus(id: number, status: PartitionStatus, at: number): unknown[] {
  const { dueAt, leasedAt, settledAt, reportedRecords, reason, history } = status
  const packed: unknown[] = [
    id,
    stateCodes[status.state],
    lineCodes[status.line],
    status.term,
    status.attempts,
    status.releases,
    status.holder,
    status.secret,
    status.outcome === null ? null : outcomeCodes[status.outcome],
    dueAt === null ? null : dueAt - at,
    leasedAt === null ? null : leasedAt - at,
    settledAt === null ? null : settledAt - at,
  ]
  if (reportedRecords !== null || reason !== null || history !== null)
    packed.push(reportedRecords, reason, history)
  return packed
}

function unpackStatus(values: readonly unknown[], at: number): PartitionStatus {
  const status = unpick(values, statusFields) as PartitionStatus
  const { state, line, outcome, dueAt, leasedAt, settledAt } = status
  status.state = stateOf(state)
  status.line = lineOf(line)
  if (outcome !== null) status.outcome = outcomeOf(outcome)
  if (dueAt !== null) status.dueAt = dueAt + at
  if (leasedAt !== null) status.leasedAt = leasedAt + at
  if (settledAt !== null) status.settledAt = settledAt + at
  return status
}

const packTally = (tally: Tally): number[] => tallyStates.map((state) => tally[state])

function unpackTally(values: readonly number[]): Tally {
  const tally = emptyTally()
  for (const [at, state] of tallyStates.entries()) tally[state] = values[at] ?? 0
  return tally
}
