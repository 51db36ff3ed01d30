import Type, { type Static } from 'typebox'
import { instanceIdKeywords } from '../identifiers.ts'
import { DEFAULT_TABLE_FIELD, MAX_INSTANCE_ATTEMPTS, MAX_PRODUCER_TASKS } from '../limits.ts'
import { attemptOutcomes, instanceRoles, instanceStates, taskStates } from '../states.ts'
import { descriptorFields } from './descriptor.ts'
import { checkpointSchema, progressSchema } from './leases.ts'
import { count, oneOf, orNull, timestamp } from './schema-parts.ts'

export const instanceIdSchema = Type.String({
  ...instanceIdKeywords,
  description: 'A name that the client chooses. It is a label and grants no rights',
  examples: ['loader-7'],
})

export const instanceTotalsSchema = Type.Object(
  {
    pulls: count({ description: 'Pulls that were answered, including empty ones' }),
    partitions: count({ description: 'Partitions handed out' }),
    records: count({ description: 'Declared records of the partitions handed out' }),
    done: count({ description: 'Leases settled as done' }),
    failed: count({ description: 'Leases settled as failed' }),
    released: count({ description: 'Leases settled as released' }),
    expired: count({ description: 'Leases that expired' }),
    revoked: count({ description: 'Leases that an operator revoked' }),
    callBacks: count({ description: 'Call-backs that were accepted' }),
    calledBack: count({ description: 'New partitions in those call-backs' }),
  },
  { description: 'Totals since the instance was first seen' },
)
export type InstanceTotals = Static<typeof instanceTotalsSchema>

const progress = (of: string) =>
  Type.Object({
    total: count({ description: `All ${of} known so far` }),
    done: count({ description: `${of} done` }),
  })

export const producedTaskSchema = Type.Object(
  {
    taskId: Type.String({ examples: ['orders-2026-03'] }),
    state: oneOf(taskStates),
    partitions: progress('partitions'),
    records: progress('records'),
    lastCallBackAt: timestamp(),
  },
  { description: 'A task that the instance called back, and its progress' },
)
export type ProducedTask = Static<typeof producedTaskSchema>

export const instanceStatusSchema = Type.Object(
  {
    instanceId: instanceIdSchema,
    role: oneOf(instanceRoles, { description: 'service: a Baton node; worker: pulls; producer: calls back' }),
    status: oneOf(instanceStates, {
      description:
        'up: sent a request within 90 seconds, or holds leases; silent: four fifths of a lease have passed without a request; ' +
        'lost: a lease expired while the instance was silent, and it sent no request since; down: holds nothing and sends nothing; ' +
        'draining: a node that shuts down and hands out nothing more',
    }),
    firstSeenAt: timestamp(),
    lastSeenAt: timestamp(),
    leases: count({ description: 'Live leases that the instance holds; 0 for nodes' }),
    pausedAt: Type.Optional(
      timestamp({ description: 'Since when it is paused: its pulls get nothing. Absent if it is not' }),
    ),
    totals: instanceTotalsSchema,
    tasks: Type.Optional(
      Type.Array(producedTaskSchema, {
        maxItems: MAX_PRODUCER_TASKS,
        description:
          'For producers: the tasks they called back, most recent first; absent in lists and events',
      }),
    ),
    version: Type.Optional(
      Type.String({ description: 'For nodes: the version of Baton', examples: ['0.1.0'] }),
    ),
    startedAt: Type.Optional(timestamp({ description: 'For nodes: when the process started' })),
    leadsSince: Type.Optional(
      timestamp({ description: 'For the node that leads: since when. Nodes without it follow' }),
    ),
    load: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description: 'For nodes: the share of the last seconds in which its event loop was busy',
        examples: [0.12],
      }),
    ),
  },
  { description: 'One instance: a service node, a worker or a producer' },
)
export type InstanceStatus = Static<typeof instanceStatusSchema>

const cursor = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: 'Cursor of the next page',
})

const revokedLeases = {
  released: count({ description: 'Leases that were revoked', examples: [3] }),
  parked: count({
    description: 'Revoked leases whose partition had no attempts left and was parked',
    examples: [0],
  }),
}

export const releaseAnswerSchema = Type.Object(
  { instanceId: instanceIdSchema, ...revokedLeases },
  { description: 'The result of revoking the leases of an instance' },
)
export type ReleaseAnswer = Static<typeof releaseAnswerSchema>

export const partitionReleaseAnswerSchema = Type.Object(
  {
    taskId: Type.String({ examples: ['orders-2026-03'] }),
    partition_name: Type.String({ examples: ['orders-2026-03-0-0'] }),
    ...revokedLeases,
  },
  { description: 'The result of revoking the lease of a partition: 1 lease, or 0 if it had none' },
)
export type PartitionReleaseAnswer = Static<typeof partitionReleaseAnswerSchema>

export const heldLeaseSchema = (tableField: string = DEFAULT_TABLE_FIELD) =>
  Type.Object(
    {
      ...descriptorFields(tableField),
      attempt: Type.Integer({ minimum: 1, examples: [1] }),
      leasedAt: timestamp({ description: 'When the lease began' }),
      expiresAt: timestamp({ description: 'When it expires unless it is renewed' }),
      progress: Type.Optional(progressSchema),
      checkpoint: checkpointSchema,
    },
    { description: 'A lease that the instance holds. Its id is a secret and not shown' },
  )
export type HeldLease = Static<ReturnType<typeof heldLeaseSchema>>

export const heldLeaseListSchema = (tableField: string = DEFAULT_TABLE_FIELD) =>
  Type.Object({
    leases: Type.Array(heldLeaseSchema(tableField), { description: 'The first to expire first' }),
    next: cursor,
  })
export type HeldLeaseList = Static<ReturnType<typeof heldLeaseListSchema>>

export const instanceAttemptSchema = (tableField: string = DEFAULT_TABLE_FIELD) =>
  Type.Object(
    {
      ...descriptorFields(tableField),
      attempt: Type.Integer({ minimum: 1, examples: [1] }),
      startedAt: timestamp(),
      endedAt: timestamp(),
      outcome: oneOf(attemptOutcomes, { examples: ['done'] }),
      reason: orNull(Type.String({ description: 'What the worker or the service said' })),
      records: orNull(count({ description: 'Number of records that the worker reported' })),
    },
    { description: 'An attempt of the instance that has ended' },
  )
export type InstanceAttempt = Static<ReturnType<typeof instanceAttemptSchema>>

export const instanceAttemptListSchema = (tableField: string = DEFAULT_TABLE_FIELD) =>
  Type.Object({
    since: timestamp({ description: 'Attempts that ended earlier are not listed: they are kept in memory' }),
    attempts: Type.Array(instanceAttemptSchema(tableField), {
      maxItems: MAX_INSTANCE_ATTEMPTS,
      description: 'The last to end first',
    }),
  })
export type InstanceAttemptList = Static<ReturnType<typeof instanceAttemptListSchema>>

export const instanceListSchema = Type.Object({
  instances: Type.Array(instanceStatusSchema),
  next: cursor,
})
export type InstanceList = Static<typeof instanceListSchema>
