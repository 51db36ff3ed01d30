import Type, { type Static } from 'typebox'
import { MAX_SCALE_TARGET_SECONDS } from '../limits.ts'
import { scaleLimits, scaleReasons } from '../states.ts'
import { count, oneOf, orNull } from './schema-parts.ts'

const backlogCountsSchema = Type.Object(
  {
    left: count({ description: 'Left for workers: the sum of all states except parked' }),
    ready: count({ description: 'Can be handed out now' }),
    held: count({ description: 'Blocked by a pause or a level barrier' }),
    leased: count({ description: 'Leased to workers' }),
    delayed: count({ description: 'Waiting for the end of a back-off' }),
    parked: count({ description: 'Out of attempts; waiting for an operator' }),
  },
  { description: 'Unfinished partitions or records, by state' },
)

const perSecond = (of: string) =>
  orNull(Type.Number({ minimum: 0, description: `${of} finished per second recently; null if none` }))

export const whoamiSchema = Type.Object(
  {
    name: orNull(
      Type.String({
        description: 'The name of the token or the user; null without tokens',
        examples: ['on call'],
      }),
    ),
    roles: Type.Array(Type.String(), { description: 'What the sender may do', examples: [['viewer']] }),
    tasks: orNull(
      Type.Array(Type.String(), {
        description: 'Prefixes of the task ids to which the token is limited; null: it is not',
      }),
    ),
  },
  { description: 'The name and the roles of the sender of the request' },
)
export type Whoami = Static<typeof whoamiSchema>

export const scaleSchema = Type.Object(
  {
    targetSeconds: Type.Integer({
      minimum: 1,
      maximum: MAX_SCALE_TARGET_SECONDS,
      description: 'Time within which the backlog should be finished',
      examples: [600],
    }),
    desiredWorkers: count({
      description:
        'Number of workers to run: the estimate, at least 1 if there is a backlog. Without a measured pace, the number of busy workers',
      examples: [12],
    }),
    estimatedWorkers: orNull(
      count({
        description:
          'Number of workers that would finish the backlog within the target at the measured pace; null without a pace',
      }),
    ),
    reason: oneOf(scaleReasons, {
      description:
        'The basis of desiredWorkers. pace: the estimate; no-pace: fewer than 5 attempts have finished; no-backlog: there is no backlog',
    }),
    limitedBy: orNull(
      oneOf(scaleLimits, {
        description:
          'Why more workers would not help, so that the target may be missed. partitions: there are no more partitions to hand out at once; max-leases: the limit of a task',
      }),
    ),
    workSeconds: orNull(
      Type.Number({
        minimum: 0,
        description: 'Lease time that the backlog needs, summed over all leases; null without a pace',
      }),
    ),
    backlog: Type.Object(
      { partitions: backlogCountsSchema, records: backlogCountsSchema },
      { description: 'The unfinished part of the selected tasks' },
    ),
    workers: Type.Object(
      {
        busy: count({
          description:
            'Workers that hold leases of the selected tasks and sent a request recently. A lease without a named holder counts as one worker',
        }),
        elsewhere: count({ description: 'Workers that hold leases of other tasks only' }),
        idle: count({ description: 'Workers that sent a request recently and hold no lease' }),
        lost: count({
          description:
            'Workers that hold leases and sent no request for most of their length; not counted as busy',
        }),
        leasesPerWorker: Type.Number({
          minimum: 1,
          description: 'Average number of leases that a busy worker holds at a time',
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
            'Tasks among these that also have partitions of tables that were not selected; all their partitions count',
        }),
      },
      { description: 'Tasks that are neither done nor cancelled' },
    ),
    complete: Type.Boolean({
      description:
        'False if there are more tasks or workers than the service adds up; each number is then too low',
    }),
  },
  { description: 'The backlog, and the number of workers that it needs' },
)
export type Scale = Static<typeof scaleSchema>
