import { type Throughput, throughputSchema, throughputSteps } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import type { ThroughputHistory, ThroughputQuery } from '../../handoff/views/queries.ts'
import { requireView } from '../admission/tokens.ts'
import { timestampOf } from '../answers/wire-values.ts'
import { invalidParameter, time, type ValuesOf, word } from '../requests/parameters.ts'
import type { Service } from '../service.ts'
import { operation, unknownTask } from './operation.ts'

const ofAll = {
  step: word(throughputSteps, {
    default: 'minute',
    description: 'Minutes are kept for one day, hours as long as the partitions of finished tasks',
  }),
  from: time('Start time; the first step contains it. By default one day before `to`, with hours seven days'),
  to: time('End time; steps that begin at or after it are omitted. By default now'),
}
const ofTask = { ...ofAll, by: word(['level'], { description: 'One point per level' }) }

/** The throughput of a task, and of all tasks. */
export function throughputRoutes(app: FastifyInstance, service: Service): void {
  const { views } = service.handOff
  operation(app, service, 'GET', '/throughput', {
    id: 'viewThroughputOfAll',
    summary: 'Partitions and records of all tasks that were done, by minute or by hour',
    tag: 'tasks',
    access: 'overview',
    query: ofAll,
    answers: [throughputSchema, 'The throughput of all tasks'],
    answer: async ({ query }) => {
      const asked = throughputQuery(query, null, false)
      const history = await views.throughput(asked)
      if (history === null) throw new Error('the history of all tasks exists from the start')
      return answerOf(asked, history)
    },
  })

  operation(app, service, 'GET', '/tasks/:taskId/throughput', {
    id: 'viewThroughput',
    summary: 'Partitions and records of a task that were done, by minute or by hour',
    tag: 'tasks',
    access: 'task',
    query: ofTask,
    answers: [throughputSchema, 'The throughput of the task'],
    answer: async ({ path: { taskId }, query: { by, ...query }, token }) => {
      const asked = throughputQuery(query, taskId, by !== null)
      const history = await views.throughput(asked)
      if (history?.task == null) throw unknownTask(taskId)
      requireView(token, history.task)
      return { taskId, ...answerOf(asked, history) }
    },
  })
}

function throughputQuery(
  { step, from, to }: ValuesOf<typeof ofAll>,
  taskId: string | null,
  byLevel: boolean,
): ThroughputQuery {
  if (from !== null && to !== null && from >= to) throw invalidParameter('from', 'must be earlier than to')
  return { taskId, step: step ?? 'minute', from, to, byLevel }
}

function answerOf({ step, from }: ThroughputQuery, history: ThroughputHistory): Throughput {
  if (from !== null && from > history.to)
    throw invalidParameter('from', 'must not be in the future without to, which is now by default')
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
