import Type, { type Static } from 'typebox'
import { instanceIdKeywords } from '../identifiers.ts'
import { MAX_PRODUCER_TASKS } from '../limits.ts'
import { instanceRoles, instanceStates, taskStates } from '../states.ts'
import { count, oneOf, timestamp } from './schema-parts.ts'

export const instanceIdSchema = Type.String({
  ...instanceIdKeywords,
  description: 'A name that an instance gives itself; a label, it grants nothing',
  examples: ['loader-7'],
})

export const instanceTotalsSchema = Type.Object(
  {
    pulls: count({ description: 'Pulls that were answered, empty ones included' }),
    partitions: count({ description: 'Partitions handed out' }),
    records: count({ description: 'Declared records of the partitions handed out' }),
    done: count({ description: 'Leases settled as done' }),
    failed: count({ description: 'Leases settled as failed' }),
    released: count({ description: 'Leases settled as released' }),
    callBacks: count({ description: 'Call-backs that were accepted' }),
    calledBack: count({ description: 'New partitions in those call-backs' }),
  },
  { description: 'Since the instance was first seen' },
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
  { description: 'A task that the instance called back, and how far it is' },
)
export type ProducedTask = Static<typeof producedTaskSchema>

export const instanceStatusSchema = Type.Object(
  {
    instanceId: instanceIdSchema,
    role: oneOf(instanceRoles, { description: 'service: a Baton node; worker: pulls; producer: calls back' }),
    status: oneOf(instanceStates, {
      description:
        'silent: holds leases, and half of their time has passed without a word; lost: most of it has; ' +
        'draining: a node that finishes what it has and takes nothing new',
    }),
    firstSeenAt: timestamp(),
    lastSeenAt: timestamp(),
    leases: count({ description: 'Live leases that the instance holds; a node hands out and holds none' }),
    totals: instanceTotalsSchema,
    tasks: Type.Optional(
      Type.Array(producedTaskSchema, {
        maxItems: MAX_PRODUCER_TASKS,
        description: 'For producers: their tasks, most recently called back first',
      }),
    ),
    version: Type.Optional(
      Type.String({ description: 'For nodes: the version of Baton', examples: ['0.1.0'] }),
    ),
    startedAt: Type.Optional(timestamp({ description: 'For nodes: when the process started' })),
  },
  { description: 'What is known about one participant' },
)
export type InstanceStatus = Static<typeof instanceStatusSchema>

export const releaseAnswerSchema = Type.Object(
  {
    instanceId: instanceIdSchema,
    released: count({ description: 'Leases that were taken back', examples: [3] }),
    parked: count({
      description: 'Those of them whose partition had no attempt left, and is parked',
      examples: [0],
    }),
  },
  { description: 'What an order to take the leases of an instance back came to' },
)
export type ReleaseAnswer = Static<typeof releaseAnswerSchema>

export const instanceListSchema = Type.Object({
  instances: Type.Array(instanceStatusSchema),
  next: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'Cursor of the next page' }),
})
export type InstanceList = Static<typeof instanceListSchema>
