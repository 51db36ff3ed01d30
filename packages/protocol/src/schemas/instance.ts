import Type, { type Static } from 'typebox'
import { instanceIdKeywords } from '../identifiers.ts'
import { MAX_PRODUCER_TASKS } from '../limits.ts'
import { instanceRoles, instanceStates, taskStates } from '../states.ts'
import { count, oneOf, timestamp } from './schema-parts.ts'

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
        'silent: holds leases and sent no request for half of their length; lost: for most of their length; ' +
        'draining: a node that finishes the requests in progress and accepts no new ones',
    }),
    firstSeenAt: timestamp(),
    lastSeenAt: timestamp(),
    leases: count({ description: 'Live leases that the instance holds; 0 for nodes' }),
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
  },
  { description: 'One instance: a service node, a worker or a producer' },
)
export type InstanceStatus = Static<typeof instanceStatusSchema>

export const releaseAnswerSchema = Type.Object(
  {
    instanceId: instanceIdSchema,
    released: count({ description: 'Leases that were revoked', examples: [3] }),
    parked: count({
      description: 'Revoked leases whose partition had no attempts left and was parked',
      examples: [0],
    }),
  },
  { description: 'The result of revoking the leases of an instance' },
)
export type ReleaseAnswer = Static<typeof releaseAnswerSchema>

export const instanceListSchema = Type.Object({
  instances: Type.Array(instanceStatusSchema),
  next: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'Cursor of the next page' }),
})
export type InstanceList = Static<typeof instanceListSchema>
