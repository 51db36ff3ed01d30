import { Readable } from 'node:stream'
import { type ManifestLine, manifestLineSchema, type PartitionRow } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import type { PartitionPage, PartitionQuery } from '../../handoff/shown/partition-record.ts'
import { requireOwn, requireTaskLimit } from '../admission/reach.ts'
import { viewPartition } from '../answers/partition-view.ts'
import { RequestProblem } from '../answers/problems.ts'
import { problemAnswers } from '../api-document/documented.ts'
import type { Service } from '../service.ts'
import { tableFieldRenamer } from './table-field.ts'
import { type TaskParams, taskIdOf, taskParams, unknownTask } from './task-parameter.ts'

const LINES_PER_PAGE = 1000
const NDJSON_TYPE = 'application/x-ndjson'

/** A whole task, however large: a page at a time is read, and the next only when the client took this one. */
export function manifestRoute(app: FastifyInstance, { handOff, tableField, callers }: Service): void {
  const withTableField = tableFieldRenamer(tableField)

  const pageAfter = (taskId: string, after: PartitionQuery['after']) =>
    handOff.partitions({ taskId, state: null, level: null, after, limit: LINES_PER_PAGE })

  const textOf = ({ facts, partitions }: PartitionPage): string =>
    partitions
      .map((record) => `${JSON.stringify(withTableField(manifestLine(viewPartition(facts, record))))}\n`)
      .join('')

  async function* lines(taskId: string, first: PartitionPage): AsyncGenerator<string> {
    let page = first
    while (true) {
      const text = textOf(page)
      if (text !== '') yield text
      if (page.next === null) return
      const following = await pageAfter(taskId, page.next)
      // Breaking off is the only way left to say that what was sent is not all. A task that was reopened may have been
      // purged before, so its next page may lack what was there.
      const isSame =
        following?.facts.purgedAt === null && following.facts.generation === first.facts.generation
      if (following === null || !isSame)
        throw new Error(`task ${taskId} was purged or reopened while its manifest was read; read it again`)
      page = following
    }
  }

  app.route<{ Params: TaskParams }>({
    method: 'GET',
    url: '/tasks/:taskId/manifest',
    config: { access: 'task' },
    exposeHeadRoute: false,
    schema: {
      operationId: 'exportManifest',
      summary: 'Every partition of a task and what became of it, one line of JSON each',
      tags: ['tasks'],
      params: taskParams,
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
      const caller = callers.of(request.raw.headers)
      requireTaskLimit(caller, taskId)
      const first = await pageAfter(taskId, null)
      if (first === null) throw unknownTask(taskId)
      requireOwn(caller, first.facts)
      if (first.facts.purgedAt !== null) {
        // An empty manifest would say that there was nothing.
        throw new RequestProblem(
          'task_purged',
          'retention removed the partitions; the task itself can still be viewed',
        )
      }
      const stream = Readable.from(lines(taskId, first), { objectMode: false })
      return reply.type(NDJSON_TYPE).send(stream)
    },
  })
}

function manifestLine(row: PartitionRow): ManifestLine {
  const { holder: _holder, leaseExpiresAt: _expiry, readyAt: _ready, lastReason: _reason, ...line } = row
  return line
}
