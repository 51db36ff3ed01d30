import { type Throughput, throughputSchema, throughputSteps } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { requireOwn, requireTaskLimit } from '../admission/reach.ts'
import { RequestProblem } from '../answers/problems.ts'
import { timestampOf } from '../answers/views.ts'
import { answers } from '../api-document/documented.ts'
import type { Service } from '../service.ts'
import { type Query, timeOf, wordOf } from './paging.ts'
import { type TaskParams, taskIdOf, taskParams, unknownTask } from './task-parameter.ts'

const time = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }))

const parameters = Type.Object({
  step: Type.Optional(
    Type.Unsafe<string>({
      type: 'string',
      enum: [...throughputSteps],
      default: 'minute',
      description: 'Minutes are kept for a day, hours for as long as the partitions of finished tasks',
    }),
  ),
  from: time('The first step is the one that this is in. A day before `to` by default, seven days for hours'),
  to: time('Steps that begin at this time or later are left out. Now by default'),
  by: Type.Optional(
    Type.Unsafe<string>({ type: 'string', enum: ['level'], description: 'A point for each level' }),
  ),
})

export function throughputRoute(app: FastifyInstance, { handOff, callers }: Service): void {
  app.route<{ Params: TaskParams; Querystring: Query }>({
    method: 'GET',
    url: '/tasks/:taskId/throughput',
    config: { access: 'task' },
    schema: {
      operationId: 'viewThroughput',
      summary: 'What became done of a task, by minute or by hour',
      tags: ['tasks'],
      params: taskParams,
      querystring: parameters,
      response: answers(throughputSchema, 'The history of the task'),
    },
    handler: async ({ params, query, raw }, reply) => {
      const taskId = taskIdOf(params)
      const caller = callers.of(raw.headers)
      requireTaskLimit(caller, taskId)
      const step = wordOf(query, 'step', throughputSteps) ?? 'minute'
      const byLevel = wordOf(query, 'by', ['level']) !== null
      const [from, to] = [timeOf(query, 'from'), timeOf(query, 'to')]
      if (from !== null && to !== null && from >= to)
        throw new RequestProblem('parameter_invalid', 'the query parameter from must be earlier than to')
      const record = await handOff.throughput({ taskId, step, from, to, byLevel })
      if (record === null) throw unknownTask(taskId)
      requireOwn(caller, record.task)
      const answer: Throughput = {
        taskId,
        step,
        from: timestampOf(record.from),
        to: timestampOf(record.to),
        points: record.rows.map(({ at, level, partitions, records }) => ({
          at: timestampOf(at),
          ...(level === null ? {} : { level }),
          partitions,
          records,
        })),
      }
      return reply.send(answer)
    },
  })
}
