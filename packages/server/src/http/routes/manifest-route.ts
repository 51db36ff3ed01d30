import { Readable } from 'node:stream'
import { type ManifestLine, manifestLineSchema, type PartitionRow, partitionStates } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { PartitionPage, PartitionQuery } from '../../handoff/views/queries.ts'
import { requireOwn, requireTaskLimit } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import { tableFieldRenamer, viewPartition } from '../answers/views.ts'
import { problemAnswers } from '../api-document/route-schemas.ts'
import {
  numberOf,
  type Query,
  type TaskParams,
  taskIdOf,
  taskParams,
  unknownTask,
  wordOf,
} from '../requests/parameters.ts'
import type { Service } from '../service.ts'

type Which = Pick<PartitionQuery, 'taskId' | 'state' | 'level'>

const LINES_PER_PAGE = 1000
const NDJSON_TYPE = 'application/x-ndjson'

/** Exports a task of any size. The next page is only read after the client has received the previous one. */
export function manifestRoute(app: FastifyInstance, { handOff, tableField, tokens }: Service): void {
  const withTableField = tableFieldRenamer(tableField)

  const pageAfter = (which: Which, after: PartitionQuery['after']) =>
    handOff.partitions({ ...which, after, limit: LINES_PER_PAGE })

  const textOf = ({ facts, partitions }: PartitionPage): string =>
    partitions
      .map((record) => `${JSON.stringify(withTableField(manifestLine(viewPartition(facts, record))))}\n`)
      .join('')

  async function* lines(which: Which, first: PartitionPage): AsyncGenerator<string> {
    let page = first
    while (true) {
      const text = textOf(page)
      if (text !== '') yield text
      if (page.next === null) return
      const following = await pageAfter(which, page.next)
      // The response has begun, so aborting it is the only way to signal that it is incomplete. A task that
      // was reopened may have been purged before, and its next page may lack partitions.
      const isSame =
        following?.facts.purgedAt === null && following.facts.generation === first.facts.generation
      if (following === null || !isSame)
        throw new Error(
          `task ${which.taskId} was purged or reopened while its manifest was read; request the manifest again`,
        )
      page = following
    }
  }

  app.route<{ Params: TaskParams; Querystring: Query }>({
    method: 'GET',
    url: '/tasks/:taskId/manifest',
    config: { access: 'task' },
    exposeHeadRoute: false,
    schema: {
      operationId: 'exportManifest',
      summary: 'The partitions of a task and their results, one line of JSON each',
      tags: ['tasks'],
      params: taskParams,
      querystring: Type.Object({
        state: Type.Optional(Type.Unsafe<string>({ type: 'string', enum: [...partitionStates] })),
        level: Type.Optional(Type.Integer({ minimum: 0 })),
      }),
      response: {
        200: {
          description: 'By level and index',
          content: { [NDJSON_TYPE]: { schema: manifestLineSchema(tableField) } },
        },
        ...problemAnswers,
      },
    },
    handler: async (request, reply) => {
      const taskId = taskIdOf(request.params)
      const token = tokens.of(request.raw.headers)
      requireTaskLimit(token, taskId)
      const which = {
        taskId,
        state: wordOf(request.query, 'state', partitionStates),
        level: numberOf(request.query, 'level'),
      }
      const first = await pageAfter(which, null)
      if (first === null) throw unknownTask(taskId)
      requireOwn(token, first.facts)
      if (first.facts.purgedAt !== null) {
        // An empty manifest would mean that the task had no partitions.
        throw new RequestProblem(
          'task_purged',
          'retention deleted the partitions; the summary of the task is kept',
        )
      }
      const stream = Readable.from(lines(which, first), { objectMode: false })
      return reply.type(NDJSON_TYPE).send(stream)
    },
  })
}

function manifestLine(row: PartitionRow): ManifestLine {
  const { holder: _holder, leaseExpiresAt: _expiry, readyAt: _ready, ...line } = row
  return line
}
