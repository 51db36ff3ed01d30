import {
  explainPartitionName,
  instanceIdKeywords,
  MAX_PARTITION_NAME_LENGTH,
  parsePartitionName,
  partitionListSchema,
  partitionOrders,
  partitionStates,
  type TaskList,
  taskListSchema,
  taskStates,
  taskViewSchema,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { IndexRange } from '../../handoff/rules/index-runs.ts'
import type { PartitionPart, PartitionPosition } from '../../handoff/views/queries.ts'
import { isWithinLimit, requireOwn, requireTaskLimit } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import { summariseTask, viewTask } from '../answers/task-view.ts'
import { logUrlsAdder, tableFieldRenamer, viewPartition } from '../answers/views.ts'
import { answers } from '../api-document/route-schemas.ts'
import {
  cursorOf,
  isGiven,
  limitOf,
  numberOf,
  once,
  pageParameters,
  type Query,
  type TaskParams,
  taskIdOf,
  taskParams,
  textOf,
  unknownTask,
  wordOf,
  writeCursor,
} from '../requests/parameters.ts'
import type { Service } from '../service.ts'

/** Far longer than any key. */
const MAX_REASON_KEY_LENGTH = 100

const filter = (words: readonly string[]) =>
  Type.Optional(Type.Unsafe<string>({ type: 'string', enum: [...words] }))

export function taskRoutes(app: FastifyInstance, { handOff, tableField, logUrl, tokens }: Service): void {
  const withTableField = tableFieldRenamer(tableField)
  const withLogUrls = logUrlsAdder(logUrl)

  app.route<{ Querystring: Query }>({
    method: 'GET',
    url: '/tasks',
    config: { access: 'view' },
    schema: {
      operationId: 'listTasks',
      summary: 'All tasks, newest first',
      tags: ['tasks'],
      querystring: Type.Object({
        state: filter(taskStates),
        parked: Type.Optional(
          Type.Unsafe<boolean>({
            type: 'boolean',
            enum: [true],
            description: 'Only tasks that have parked partitions, in any state',
          }),
        ),
        search: Type.Optional(Type.String({ description: 'Only tasks whose id contains this text' })),
        ...pageParameters,
      }),
      response: answers(
        taskListSchema,
        'One page of tasks. A short or empty page is not necessarily the last one',
      ),
    },
    handler: async ({ query, raw }, reply) => {
      const token = tokens.of(raw.headers)
      const page = await handOff.views.tasks({
        state: wordOf(query, 'state', taskStates),
        parked: isGiven(query, 'parked'),
        search: once(query, 'search') ?? null,
        before: cursorOf(query, asPosition),
        limit: limitOf(query),
      })
      const list: TaskList = {
        tasks: page.tasks
          .filter(({ facts }) => isWithinLimit(token, facts.taskId))
          .map((row) => summariseTask(row, page.now)),
        next: page.next === null ? null : writeCursor(page.next),
      }
      return reply.send(list)
    },
  })

  app.route<{ Params: TaskParams }>({
    method: 'GET',
    url: '/tasks/:taskId',
    config: { access: 'task' },
    schema: {
      operationId: 'viewTask',
      summary: 'A task and its progress',
      tags: ['tasks'],
      params: taskParams,
      response: answers(taskViewSchema, 'The task'),
    },
    handler: async ({ params, raw }, reply) => {
      const taskId = taskIdOf(params)
      const token = tokens.of(raw.headers)
      requireTaskLimit(token, taskId)
      const record = await handOff.views.task(taskId)
      if (record === null) throw unknownTask(taskId)
      requireOwn(token, record.facts)
      return reply.send(viewTask(record, handOff.policy))
    },
  })

  app.route<{ Params: TaskParams; Querystring: Query }>({
    method: 'GET',
    url: '/tasks/:taskId/partitions',
    config: { access: 'task' },
    schema: {
      operationId: 'listPartitions',
      summary: 'The partitions of a task, by level and index',
      tags: ['tasks'],
      params: taskParams,
      querystring: Type.Object({
        state: filter(partitionStates),
        level: Type.Optional(Type.Integer({ minimum: 0 })),
        indexes: Type.Optional(
          Type.String({
            pattern: '^[0-9]+-[0-9]+$',
            description: 'Only this range of indexes of the level, such as `100-199`',
            examples: ['100-199'],
          }),
        ),
        name: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: MAX_PARTITION_NAME_LENGTH,
            description:
              'Only the partition with this name, or those whose name begins with the text before `*`',
            examples: ['orders-2026-03-0-17', 'orders-2026-03-0-1*'],
          }),
        ),
        holder: Type.Optional(
          Type.Unsafe<string>({
            ...instanceIdKeywords,
            description: 'Only partitions of which this instance holds the lease',
            examples: ['loader-7'],
          }),
        ),
        reason: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'Only partitions whose last failure belongs to the group with this `key`, see `failures` of the task',
          }),
        ),
        order: Type.Optional(
          Type.Unsafe<string>({
            type: 'string',
            enum: [...partitionOrders],
            description:
              '`unfinished`: first what was handed out and is not finished, then what was never handed out, in the order of arrival on each level, then what is finished',
          }),
        ),
        ...pageParameters,
      }),
      response: answers(
        partitionListSchema(tableField),
        'One page of partitions. A short or empty page is not necessarily the last one',
      ),
    },
    handler: async ({ params, query, raw }, reply) => {
      const taskId = taskIdOf(params)
      const token = tokens.of(raw.headers)
      requireTaskLimit(token, taskId)
      const page = await handOff.views.partitions({
        taskId,
        state: wordOf(query, 'state', partitionStates),
        level: numberOf(query, 'level'),
        indexes: indexesOf(query),
        name: nameOf(query, taskId),
        holder: textOf(query, 'holder', instanceIdKeywords.maxLength),
        reason: textOf(query, 'reason', MAX_REASON_KEY_LENGTH),
        order: wordOf(query, 'order', partitionOrders),
        after: cursorOf(query, asPlace),
        limit: limitOf(query),
      })
      if (page === null) throw unknownTask(taskId)
      const { facts, partitions, next } = page
      requireOwn(token, facts)
      return reply.send({
        partitions: partitions.map((record) => withTableField(withLogUrls(viewPartition(facts, record)))),
        next: next === null ? null : writeCursor([next.level, next.at, next.part]),
      })
    },
  })
}

function indexesOf(query: Query): IndexRange | null {
  const text = once(query, 'indexes')
  if (text === undefined) return null
  const [first = 0, last = 0] = /^\d{1,16}-\d{1,16}$/.test(text) ? text.split('-').map(Number) : [1, 0]
  if (first > last || !Number.isSafeInteger(last))
    throw new RequestProblem(
      'parameter_invalid',
      'the query parameter indexes must be a range such as 100-199',
    )
  if (query['level'] === undefined)
    throw new RequestProblem('parameter_invalid', 'the query parameter indexes needs level')
  return { first, last }
}

function asPosition(position: unknown): number | undefined {
  return Number.isSafeInteger(position) ? (position as number) : undefined
}

function nameOf(query: Query, taskId: string): string | null {
  const name = textOf(query, 'name', MAX_PARTITION_NAME_LENGTH)
  if (name === null || name.endsWith('*') || parsePartitionName(taskId, name) !== undefined) return name
  throw new RequestProblem(
    'parameter_invalid',
    `the query parameter name ${explainPartitionName(taskId, name)}, or end in * for names that begin with it`,
  )
}

const parts: readonly PartitionPart[] = ['all', 'begun', 'fresh', 'finished']

function asPlace(position: unknown): PartitionPosition | undefined {
  if (!Array.isArray(position) || position.length !== 3) return undefined
  const [level, at, part] = position as [number, number, PartitionPart]
  return Number.isSafeInteger(level) && Number.isSafeInteger(at) && parts.includes(part)
    ? { level, at, part }
    : undefined
}
