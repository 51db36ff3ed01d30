import Type, { type Static } from 'typebox'
import {
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
import { attemptSecondsSchema, failureSchema, stragglerSchema } from './partitions.ts'
import { count, oneOf, orNull, timestamp } from './schema-parts.ts'
import { taskSettingsSchema } from './task-control.ts'

export const stateCountsSchema = Type.Object(
  {
    total: count({ description: 'The sum of all the others' }),
    ready: count({ description: 'Due to be handed out' }),
    held: count({ description: 'Kept back by a pause or a level barrier' }),
    leased: count({ description: 'In the hands of a worker' }),
    delayed: count({ description: 'Waiting for the end of a back-off' }),
    parked: count({ description: 'Out of attempts; waiting for an operator' }),
    done: count({ description: 'Finished' }),
    cancelled: count({ description: 'Given up together with the task' }),
  },
  { description: 'A number for each state' },
)
export type StateCounts = Static<typeof stateCountsSchema>

export const indexRangesSchema = Type.Object(
  {
    first: count({ description: 'Lowest index seen' }),
    last: count({ description: 'Highest index seen' }),
    missing: count({ description: 'Indexes between the two that were not called back' }),
    gaps: Type.Array(Type.Object({ first: count(), last: count() }), {
      maxItems: MAX_LISTED_GAPS,
      description: 'Where they are missing, lowest first',
    }),
  },
  { description: 'Which indexes of a level are known' },
)
export type IndexRanges = Static<typeof indexRangesSchema>

export const levelViewSchema = Type.Object(
  {
    level: count({ examples: [0] }),
    open: Type.Boolean({ description: 'False while a pause or a level barrier keeps its partitions back' }),
    partitions: stateCountsSchema,
    records: stateCountsSchema,
    meanAttemptSeconds: orNull(
      Type.Number({
        minimum: 0,
        description: 'How long the attempts took that finished a partition, on average',
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
    description: 'Goes up when a call-back reopens a task that was done',
    examples: [1],
  }),
  sealed: Type.Boolean({ description: 'True once it was said that no more partitions will come' }),
  expectedPartitions: orNull(count({ description: 'As given when sealing' })),
  missingPartitions: orNull(
    count({ description: 'Expected but not called back: a task that is done without them is not whole' }),
  ),
  partitions: stateCountsSchema,
  records: stateCountsSchema,
  firstCallBackAt: timestamp(),
  lastCallBackAt: timestamp(),
  recordsPerSecond: orNull(Type.Number({ minimum: 0, description: 'Recent pace; null when there is none' })),
  etaSeconds: orNull(
    Type.Number({
      minimum: 0,
      description: 'Until all is done that is not parked; null when nothing can be said',
    }),
  ),
  etaWaitsFor: orNull(
    oneOf(etaReasons, {
      description:
        'What that depends on: the pace; a lease that has to end first; or a back-off. Null without an estimate',
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
    parked: count({ description: 'Its parked partitions: these need an operator' }),
    unfinished: count({ description: 'All of its partitions that are neither done nor cancelled' }),
  },
  { description: 'What keeps the level barrier closed' },
)
export type WaitingFor = Static<typeof waitingForSchema>

export const reportedRecordsSchema = Type.Object(
  {
    declared: count({ description: 'Declared records of the partitions whose worker reported a number' }),
    reported: count({ description: 'Records that those workers reported' }),
    mismatched: count({ description: 'Partitions where the two differ' }),
    mismatches: Type.Array(
      Type.Object({
        partition_name: Type.String({ examples: ['orders-2026-03-0-7'] }),
        declared: count(),
        reported: count(),
      }),
      { maxItems: MAX_LISTED_MISMATCHES },
    ),
  },
  { description: 'What producers declared against what workers processed' },
)
export type ReportedRecords = Static<typeof reportedRecordsSchema>

export const taskViewSchema = Type.Object(
  {
    ...summaryFields,
    levelBarrier: Type.Boolean({ description: 'Whether a level waits until all lower ones are finished' }),
    settings: taskSettingsSchema,
    waitingFor: orNull(waitingForSchema),
    settledByDelivery: count({ description: 'Partitions that being handed out has settled' }),
    levels: Type.Array(levelViewSchema, { maxItems: MAX_LISTED_LEVELS, description: 'Lowest first' }),
    levelsOmitted: count({ description: 'Levels beyond those listed' }),
    calledBackBy: Type.Array(Type.String({ examples: ['orders compute'] }), {
      description: 'Names of the tokens that called partitions of it back; empty where none are asked for',
    }),
    computeTables: Type.Array(Type.String({ examples: ['results.orders'] }), { maxItems: MAX_LISTED_TABLES }),
    finishedAt: orNull(timestamp()),
    purgedAt: orNull(timestamp({ description: 'When its partitions were forgotten; the numbers stay' })),
    attemptsWasted: count({ description: 'Attempts that ended in failure or expiry' }),
    attemptSeconds: orNull(attemptSecondsSchema),
    workers: count({ description: 'Instances that hold leases of it, as far as they named themselves' }),
    stragglers: Type.Array(stragglerSchema, {
      maxItems: MAX_LISTED_STRAGGLERS,
      description: 'Leased partitions that take much longer than others, the oldest first',
    }),
    failures: Type.Array(failureSchema, {
      maxItems: MAX_LISTED_FAILURES,
      description: 'Those attempts by reason, the most frequent first',
    }),
    failuresOmitted: count({ description: 'Such attempts whose reason is not listed' }),
    reported: reportedRecordsSchema,
  },
  { description: 'How far a task is' },
)
export type TaskView = Static<typeof taskViewSchema>

export const totalsSchema = Type.Object(
  {
    tasks: Type.Object(
      {
        open: count(),
        stalled: count(),
        paused: count(),
        withParked: count({ description: 'Those of all of them that have parked partitions' }),
      },
      { description: 'Tasks that are neither done nor cancelled' },
    ),
    partitions: stateCountsSchema,
    records: stateCountsSchema,
    complete: Type.Boolean({
      description:
        'False when there are more such tasks than are added up: each number is then a lower bound',
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
        description: `Only with \`by=level\`. Levels from ${THROUGHPUT_LEVELS} up are counted together, as ${THROUGHPUT_LEVELS}`,
      }),
    ),
    partitions: count({ description: 'Partitions that became done' }),
    records: count({ description: 'Their declared records' }),
  },
  { description: 'What became done within one minute or hour' },
)
export type ThroughputPoint = Static<typeof throughputPointSchema>

export const throughputSchema = Type.Object(
  {
    taskId: Type.String({ examples: ['orders-2026-03'] }),
    step: oneOf(throughputSteps, { description: 'How long one point is' }),
    from: timestamp({
      description: `Where the points begin: as asked for, or later where there are more than ${MAX_THROUGHPUT_POINTS}. Those before it are found with this time as \`to\``,
    }),
    to: timestamp({ description: 'Where they end; the last step may not be over yet' }),
    points: Type.Array(throughputPointSchema, {
      maxItems: MAX_THROUGHPUT_POINTS,
      description: 'Oldest first. Steps in which nothing became done are left out',
    }),
  },
  { description: 'What became done of a task, by minute or by hour' },
)
export type Throughput = Static<typeof throughputSchema>
