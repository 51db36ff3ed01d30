import Type, { type Static } from 'typebox'
import {
  GRID_PARTITIONS_COUNTED,
  MAX_GRID_CELLS,
  MAX_LISTED_FAILURES,
  MAX_LISTED_GAPS,
  MAX_LISTED_LEVELS,
  MAX_LISTED_MISMATCHES,
  MAX_LISTED_STRAGGLERS,
  MAX_LISTED_TABLES,
  MAX_THROUGHPUT_POINTS,
  THROUGHPUT_LEVELS,
} from '../limits.ts'
import { etaReasons, taskStates, throughputSteps } from '../states.ts'
import { taskControlSchema } from './audit.ts'
import { attemptSecondsSchema, failureSchema, stragglerSchema } from './partitions.ts'
import { count, oneOf, orNull, timestamp } from './schema-parts.ts'
import { taskSettingsSchema } from './task-control.ts'

export const stateCountsSchema = Type.Object(
  {
    total: count({ description: 'The sum of all states' }),
    ready: count({ description: 'Can be handed out now' }),
    held: count({ description: 'Blocked by a pause or a level barrier' }),
    leased: count({ description: 'Leased to a worker' }),
    delayed: count({ description: 'Waiting for the end of a back-off' }),
    parked: count({ description: 'Out of attempts; waiting for an operator' }),
    done: count({ description: 'Finished' }),
    cancelled: count({ description: 'Cancelled with the task' }),
  },
  {
    description: 'A number for each state',
    examples: [{ total: 42, ready: 11, held: 0, leased: 4, delayed: 0, parked: 1, done: 26, cancelled: 0 }],
  },
)
export type StateCounts = Static<typeof stateCountsSchema>

export const indexRangesSchema = Type.Object(
  {
    first: count({ description: 'Lowest index that was called back' }),
    last: count({ description: 'Highest index that was called back' }),
    missing: count({ description: 'Number of indexes between first and last that were not called back' }),
    gaps: Type.Array(Type.Object({ first: count(), last: count() }), {
      maxItems: MAX_LISTED_GAPS,
      description: 'Ranges of missing indexes, lowest first',
    }),
  },
  { description: 'The indexes of a level that were called back' },
)
export type IndexRanges = Static<typeof indexRangesSchema>

export const levelViewSchema = Type.Object(
  {
    level: count({ examples: [0] }),
    open: Type.Boolean({ description: 'False while a pause or a level barrier blocks the level' }),
    partitions: stateCountsSchema,
    records: stateCountsSchema,
    meanAttemptSeconds: orNull(
      Type.Number({
        minimum: 0,
        description: 'Average duration of the attempts that finished a partition',
      }),
    ),
    indexes: indexRangesSchema,
  },
  { description: 'One level of a task' },
)
export type LevelView = Static<typeof levelViewSchema>

const summaryFields = {
  taskId: Type.String({ examples: ['orders-2026-03'] }),
  state: oneOf(taskStates),
  generation: Type.Integer({
    minimum: 1,
    description: 'Incremented when a call-back reopens a task that was done',
    examples: [1],
  }),
  sealed: Type.Boolean({ description: 'True if the task is sealed: it accepts no new partitions' }),
  expectedPartitions: orNull(
    count({ description: 'The total number of partitions that the seal request declared' }),
  ),
  missingPartitions: orNull(
    count({ description: 'Number of expected partitions that were not called back' }),
  ),
  partitions: stateCountsSchema,
  records: stateCountsSchema,
  reason: orNull(
    Type.String({
      description: 'The first reason in `failures`; null if it has none, and for a finished task',
      examples: ['KeyError: amount'],
    }),
  ),
  firstCallBackAt: timestamp(),
  lastCallBackAt: timestamp(),
  recordsPerSecond: orNull(
    Type.Number({ minimum: 0, description: 'Recent pace; null if no partition was finished recently' }),
  ),
  etaSeconds: orNull(
    Type.Number({
      minimum: 0,
      description:
        'Estimated time until all partitions except the parked ones are done; null without an estimate',
    }),
  ),
  etaWaitsFor: orNull(
    oneOf(etaReasons, {
      description:
        'What the estimate depends on: the pace, the end of a lease, or the end of a back-off; null without an estimate',
    }),
  ),
}

export const taskSummarySchema = Type.Object(summaryFields, { description: 'A task in a list' })
export type TaskSummary = Static<typeof taskSummarySchema>

export const taskListSchema = Type.Object({
  tasks: Type.Array(taskSummarySchema),
  next: orNull(Type.String({ description: 'Cursor of the next page' })),
})
export type TaskList = Static<typeof taskListSchema>

export const waitingForSchema = Type.Object(
  {
    level: count({ description: 'The lowest unfinished level' }),
    parked: count({ description: 'Parked partitions of this level; these need an operator' }),
    unfinished: count({ description: 'Partitions of this level that are neither done nor cancelled' }),
  },
  { description: 'The level that keeps the level barrier closed' },
)
export type WaitingFor = Static<typeof waitingForSchema>

export const reportedRecordsSchema = Type.Object(
  {
    declared: count({
      description: 'Declared records of the partitions for which a worker reported a number',
    }),
    reported: count({ description: 'Records that workers reported' }),
    mismatched: count({ description: 'Number of partitions for which the two numbers differ' }),
    mismatches: Type.Array(
      Type.Object({
        partition_name: Type.String({ examples: ['orders-2026-03-0-7'] }),
        declared: count(),
        reported: count(),
      }),
      { maxItems: MAX_LISTED_MISMATCHES },
    ),
  },
  { description: 'Declared records compared with the records that workers processed' },
)
export type ReportedRecords = Static<typeof reportedRecordsSchema>

export const taskViewSchema = Type.Object(
  {
    ...summaryFields,
    control: taskControlSchema,
    levelBarrier: Type.Boolean({
      description: 'Whether each level waits until all lower levels are finished',
    }),
    settings: taskSettingsSchema,
    waitingFor: orNull(waitingForSchema),
    settledByDelivery: count({
      description: 'Number of partitions that were settled by delivery (at most once)',
    }),
    levels: Type.Array(levelViewSchema, { maxItems: MAX_LISTED_LEVELS, description: 'Lowest first' }),
    levelsOmitted: count({ description: 'Number of levels that are not listed' }),
    calledBackBy: Type.Array(Type.String({ examples: ['orders compute'] }), {
      description:
        'Names of the tokens that called back partitions of the task; empty if the service requires no tokens',
    }),
    computeTables: Type.Array(Type.String({ examples: ['results.orders'] }), { maxItems: MAX_LISTED_TABLES }),
    finishedAt: orNull(timestamp()),
    purgedAt: orNull(
      timestamp({ description: 'When retention deleted the partitions; the counts are kept' }),
    ),
    attemptsWasted: count({ description: 'Number of attempts that failed or expired' }),
    attemptSeconds: orNull(attemptSecondsSchema),
    workers: count({ description: 'Number of named instances that hold leases of the task' }),
    stragglers: Type.Array(stragglerSchema, {
      maxItems: MAX_LISTED_STRAGGLERS,
      description: 'Leased partitions that take much longer than others, oldest first',
    }),
    failures: Type.Array(failureSchema, {
      maxItems: MAX_LISTED_FAILURES,
      description:
        'Failed and expired attempts by reason: first what most partitions are parked for, then the most frequent',
    }),
    reported: reportedRecordsSchema,
  },
  { description: 'A task and its progress' },
)
export type TaskView = Static<typeof taskViewSchema>

export const totalsSchema = Type.Object(
  {
    tasks: Type.Object(
      {
        open: count(),
        stalled: count(),
        paused: count(),
        withParked: count({ description: 'Tasks among these that have parked partitions' }),
      },
      { description: 'Tasks that are neither done nor cancelled' },
    ),
    partitions: stateCountsSchema,
    records: stateCountsSchema,
    complete: Type.Boolean({
      description:
        'False if there are more unfinished tasks than the service adds up; each number is then a lower bound',
    }),
  },
  { description: 'All unfinished tasks together' },
)
export type Totals = Static<typeof totalsSchema>

export const throughputPointSchema = Type.Object(
  {
    at: timestamp({ description: 'When the minute or hour began' }),
    level: Type.Optional(
      count({
        maximum: THROUGHPUT_LEVELS,
        description: `Only with \`by=level\`. Levels of ${THROUGHPUT_LEVELS} and above are counted together as ${THROUGHPUT_LEVELS}`,
      }),
    ),
    partitions: count({ description: 'Partitions that were done in this step' }),
    records: count({ description: 'Declared records of these partitions' }),
  },
  { description: 'Partitions and records that were done within one minute or hour' },
)
export type ThroughputPoint = Static<typeof throughputPointSchema>

export const throughputSchema = Type.Object(
  {
    taskId: Type.Optional(
      Type.String({ examples: ['orders-2026-03'], description: 'Absent in the throughput of all tasks' }),
    ),
    step: oneOf(throughputSteps, { description: 'The length of one step' }),
    from: timestamp({
      description: `Start of the first step: as requested, or later if there are more than ${MAX_THROUGHPUT_POINTS} points. Request earlier points with this time as \`to\``,
    }),
    to: timestamp({ description: 'End of the last step, which may still be in progress' }),
    points: Type.Array(throughputPointSchema, {
      maxItems: MAX_THROUGHPUT_POINTS,
      description: 'Oldest first. Steps in which no partition was done are omitted',
    }),
  },
  { description: 'Partitions and records of a task, or of all tasks, that were done, by minute or by hour' },
)
export type Throughput = Static<typeof throughputSchema>

export const gridSchema = Type.Object(
  {
    taskId: Type.String({ examples: ['orders-2026-03'] }),
    level: count({ description: 'The level that was requested, by default the lowest' }),
    partitions: count({ description: 'The number of partitions of the level' }),
    sampled: Type.Boolean({
      description: `False if all partitions were counted. Of a level with more than ${GRID_PARTITIONS_COUNTED} partitions, only the first of each cell are counted, and parked ones`,
    }),
    cells: Type.Array(
      Type.Object({
        first: count({ description: 'The lowest index of the cell' }),
        last: count({ description: 'The highest index of the cell' }),
        counts: Type.Partial(Type.Omit(stateCountsSchema, ['total']), {
          description: 'The number of partitions in each state that occurs',
        }),
      }),
      { maxItems: MAX_GRID_CELLS, description: 'In the order of the index' },
    ),
  },
  { description: 'The states of the partitions of one level, counted by ranges of indexes' },
)
export type Grid = Static<typeof gridSchema>
