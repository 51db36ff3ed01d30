import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { type ManifestLine, manifestLineSchema, type PartitionRow, partitionStates } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { PartitionPage, PartitionQuery } from '../../handoff/views/queries.ts'
import { requireView } from '../admission/token-limits.ts'
import { presentPartition } from '../answers/partition-view.ts'
import { RequestProblem } from '../answers/problems.ts'
import { tableFieldRenamer } from '../answers/wire-values.ts'
import { level, word } from '../requests/parameters.ts'
import type { ReadInTurn } from '../requests/read-scheduler.ts'
import type { RouteContext } from '../route-context.ts'
import { operation, unknownTask } from './operation.ts'

type Which = Pick<PartitionQuery, 'taskId' | 'state' | 'level'>

interface WrittenPage {
  readonly text: string
  readonly next: PartitionPage['next']
}

/** Each page is read and written without a pause. */
const LINES_PER_PAGE = 250
const NDJSON_TYPE = 'application/x-ndjson'

/** Exports a task of any size. The next page is only read after the client has received the previous one. */
export function manifestRoute(app: FastifyInstance, context: RouteContext, readInTurn: ReadInTurn): void {
  const { handOff, tableField } = context
  const withTableField = tableFieldRenamer(tableField)

  const pageAfter = (which: Which, after: PartitionQuery['after']) =>
    handOff.views.partitions({ ...which, after, limit: LINES_PER_PAGE })

  const written = ({ facts, partitions, next }: PartitionPage): WrittenPage => {
    const rows = partitions.map((record) => withTableField(manifestLine(presentPartition(facts, record))))
    return { text: rows.map((row) => `${JSON.stringify(row)}\n`).join(''), next }
  }

  async function* lines(
    which: Which,
    first: PartitionPage,
    begin: WrittenPage,
    request: IncomingMessage,
  ): AsyncGenerator<string> {
    let page = begin
    while (true) {
      if (page.text !== '') yield page.text
      const { next } = page
      if (next === null) return
      page = await readInTurn(request, async () => written(await following(which, next, first)))
    }
  }

  async function following(
    which: Which,
    after: PartitionQuery['after'],
    first: PartitionPage,
  ): Promise<PartitionPage> {
    const page = await pageAfter(which, after)
    // The response has begun, so aborting it is the only way to signal that it is incomplete. A task that was
    // reopened may have been purged before, and its next page may lack partitions.
    const isSame = page?.facts.purgedAt === null && page.facts.generation === first.facts.generation
    if (page === null || !isSame)
      throw new Error(
        `task ${which.taskId} was purged or reopened while its manifest was read; request the manifest again`,
      )
    return page
  }

  operation(app, context, 'GET', '/tasks/:taskId/manifest', {
    id: 'exportManifest',
    summary: 'The partitions of a task and their results, one line of JSON each',
    tag: 'tasks',
    access: 'task',
    query: { state: word(partitionStates), level: level() },
    answers: [Type.Unsafe<Readable>(manifestLineSchema(tableField)), 'By level and index', NDJSON_TYPE],
    answer: async ({ path: { taskId }, query, token, raw }) => {
      const which = { taskId, ...query }
      const first = await pageAfter(which, null)
      if (first === null) throw unknownTask(taskId)
      requireView(token, first.facts)
      if (first.facts.purgedAt !== null) {
        // An empty manifest would mean that the task had no partitions.
        throw new RequestProblem(
          'task_purged',
          'retention deleted the partitions; the summary of the task is kept',
        )
      }
      return Readable.from(lines(which, first, written(first), raw), { objectMode: false })
    },
  })
}

function manifestLine(row: PartitionRow): ManifestLine {
  const { holder: _holder, leaseExpiresAt: _expiry, readyAt: _ready, ...settled } = row
  const { progress: _progress, checkpoint: _checkpoint, ...line } = settled
  return line
}
