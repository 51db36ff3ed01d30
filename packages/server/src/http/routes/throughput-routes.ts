import { type Throughput, throughputSchema, throughputSteps } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { ThroughputHistory, ThroughputQuery } from '../../handoff/views/queries.ts'
import { requireOwn, requireTaskLimit } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import { timestampOf } from '../answers/views.ts'
import { answers } from '../api-document/route-schemas.ts'
import {
  type Query,
  type TaskParams,
  taskIdOf,
  taskParams,
  timeOf,
  unknownTask,
  wordOf,
} from '../requests/parameters.ts'
import type { Service } from '../service.ts'

const time = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }))

const parameters = Type.Object({
  step: Type.Optional(
    Type.Unsafe<string>({
      type: 'string',
      enum: [...throughputSteps],
      default: 'minute',
      description: 'Minutes are kept for one day, hours as long as the partitions of finished tasks',
    }),
  ),
  from: time('Start time; the first step contains it. By default one day before `to`, with hours seven days'),
  to: time('End time; steps that begin at or after it are omitted. By default now'),
  by: Type.Optional(
    Type.Unsafe<string>({ type: 'string', enum: ['level'], description: 'One point per level' }),
  ),
})

const { by: _by, ...parametersOfAll } = parameters.properties

/** The throughput of a task, and of all tasks. */
export function throughputRoutes(app: FastifyInstance, { handOff, tokens }: Service): void {
  app.route<{ Querystring: Query }>({
    method: 'GET',
    url: '/throughput',
    config: { access: 'overview' },
    schema: {
      operationId: 'viewThroughputOfAll',
      summary: 'Partitions and records of all tasks that were done, by minute or by hour',
      tags: ['tasks'],
      querystring: Type.Object(parametersOfAll),
      response: answers(throughputSchema, 'The throughput of all tasks'),
    },
    handler: async ({ query }, reply) => {
      const asked = throughputQuery(query, null)
      const history = await handOff.views.throughput(asked)
      // The history of all tasks exists from the start.
      return reply.send(history === null ? undefined : answerOf(asked, history))
    },
  })

  app.route<{ Params: TaskParams; Querystring: Query }>({
    method: 'GET',
    url: '/tasks/:taskId/throughput',
    config: { access: 'task' },
    schema: {
      operationId: 'viewThroughput',
      summary: 'Partitions and records of a task that were done, by minute or by hour',
      tags: ['tasks'],
      params: taskParams,
      querystring: parameters,
      response: answers(throughputSchema, 'The throughput of the task'),
    },
    handler: async ({ params, query, raw }, reply) => {
      const taskId = taskIdOf(params)
      const token = tokens.of(raw.headers)
      requireTaskLimit(token, taskId)
      const asked = throughputQuery(query, taskId)
      const history = await handOff.views.throughput(asked)
      if (history?.task == null) throw unknownTask(taskId)
      requireOwn(token, history.task)
      return reply.send({ taskId, ...answerOf(asked, history) })
    },
  })
}

function throughputQuery(query: Query, taskId: string | null): ThroughputQuery {
  const step = wordOf(query, 'step', throughputSteps) ?? 'minute'
  const [from, to] = [timeOf(query, 'from'), timeOf(query, 'to')]
  if (from !== null && to !== null && from >= to)
    throw new RequestProblem('parameter_invalid', 'the query parameter from must be earlier than to')
  return { taskId, step, from, to, byLevel: wordOf(query, 'by', ['level']) !== null }
}

function answerOf({ step, from }: ThroughputQuery, history: ThroughputHistory): Throughput {
  if (from !== null && from > history.to)
    throw new RequestProblem(
      'parameter_invalid',
      'the query parameter from must not be in the future without to, which is now by default',
    )
  return {
    step,
    from: timestampOf(history.from),
    to: timestampOf(history.to),
    points: history.rows.map(({ at, level, partitions, records }) => ({
      at: timestampOf(at),
      ...(level === null ? {} : { level }),
      partitions,
      records,
    })),
  }
}
