import Type, { type Static } from 'typebox'
import { MAX_SCALE_TARGET_SECONDS } from '../limits.ts'
import { scaleLimits, scaleReasons } from '../states.ts'
import { count, oneOf, orNull, timestamp } from './schema-parts.ts'

const backlogCountsSchema = Type.Object(
  {
    left: count({ description: 'What workers still have to do: all of these but the parked' }),
    ready: count({ description: 'May be handed out now' }),
    held: count({ description: 'Behind a level barrier, or of a paused task' }),
    leased: count({ description: 'In the hands of workers' }),
    delayed: count({ description: 'In back-off after a failed attempt' }),
    parked: count({ description: 'Out of attempts: waits for an operator, and for no worker' }),
  },
  { description: 'What is not finished, by state' },
)

const perSecond = (of: string) =>
  orNull(Type.Number({ minimum: 0, description: `${of} finished per second lately; null when none was` }))

export const scaleSchema = Type.Object(
  {
    targetSeconds: Type.Integer({
      minimum: 1,
      maximum: MAX_SCALE_TARGET_SECONDS,
      description: 'Within how long the backlog is to be finished',
      examples: [600],
    }),
    desiredWorkers: count({
      description:
        'How many workers to run: the estimate; at least 1 while there is something to do; without a measured pace as many as are busy',
      examples: [12],
    }),
    estimatedWorkers: orNull(
      count({
        description: 'How many would finish within the target at the measured pace; null without a pace',
      }),
    ),
    reason: oneOf(scaleReasons, {
      description:
        'What desiredWorkers comes from: pace: the estimate; no-pace: fewer than 5 attempts have finished; no-backlog: nothing to do',
    }),
    limitedBy: orNull(
      oneOf(scaleLimits, {
        description:
          'Why more workers would not help, and the target may be missed: partitions: there are no more to hand out at once; max-leases: the limit of a task',
      }),
    ),
    workSeconds: orNull(
      Type.Number({
        minimum: 0,
        description:
          'Time under lease that the backlog still takes, all leases together; null without a pace',
      }),
    ),
    backlog: Type.Object(
      { partitions: backlogCountsSchema, records: backlogCountsSchema },
      { description: 'What is left of the tasks that were asked for' },
    ),
    workers: Type.Object(
      {
        busy: count({
          description:
            'Hold leases of these tasks and were heard from; a lease without a named holder counts as one worker',
        }),
        elsewhere: count({ description: 'Hold leases of other tasks only' }),
        idle: count({ description: 'Were heard from lately and hold no lease' }),
        lost: count({
          description: 'Hold leases and have not been heard from for most of their time; not counted as busy',
        }),
        leasesPerWorker: Type.Number({
          minimum: 1,
          description: 'Leases that a busy worker holds at a time, on average',
        }),
      },
      { description: 'Instances that pull' },
    ),
    pace: Type.Object({
      partitionsPerSecond: perSecond('Partitions'),
      recordsPerSecond: perSecond('Declared records'),
    }),
    tasks: Type.Object(
      {
        open: count(),
        stalled: count(),
        paused: count(),
        withOtherTables: count({
          description:
            'Those of all of them that also have partitions of tables that were not asked for: they count as a whole',
        }),
      },
      { description: 'Tasks that are neither done nor cancelled' },
    ),
    complete: Type.Boolean({
      description:
        'False when there are more tasks or workers than are added up: each number is then too low',
    }),
  },
  { description: 'How much work there is, and how many workers it takes' },
)
export type Scale = Static<typeof scaleSchema>

export const auditKinds = ['order', 'refused', 'reload'] as const

export const auditEntrySchema = Type.Object(
  {
    at: timestamp({ description: 'When it happened; of several that are one entry, the last' }),
    kind: oneOf(auditKinds, {
      description:
        'order: a request to change a task or the service. refused: a token that is unknown, or not for this. ' +
        'reload: a file of tokens or certificates that changed',
    }),
    name: orNull(
      Type.String({ description: 'The name of the token; null where there was none that is known' }),
    ),
    address: orNull(Type.String({ description: 'Where the request came from' })),
    action: Type.String({ description: 'What was asked for', examples: ['POST /tasks/orders/pause'] }),
    outcome: Type.String({
      description: 'done, or the error code that was answered',
      examples: ['done', 'task_unknown'],
    }),
    detail: orNull(Type.String({ description: 'More about it, for a person' })),
    times: count({
      description: 'How often: refusals that follow each other from one address are one entry',
    }),
  },
  { description: 'An action and who did it' },
)
export type AuditEntry = Static<typeof auditEntrySchema>

export const auditListSchema = Type.Object({
  entries: Type.Array(auditEntrySchema),
  next: orNull(Type.String({ description: 'The cursor of the next page; null on the last one' })),
})
export type AuditList = Static<typeof auditListSchema>
