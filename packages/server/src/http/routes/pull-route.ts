import { pullAnswerSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { handedOutWithinLimits, pullWithinLimits } from '../admission/token-limits.ts'
import { revoked } from '../admission/tokens.ts'
import { JSON_TYPE } from '../answers/headers.ts'
import { pulledPartitionWriter } from '../answers/views.ts'
import { answers, pullHeaders, pullParameters } from '../api-document/route-schemas.ts'
import type { AdmissionBudget } from '../budget/budget.ts'
import type { FastPath } from '../fast-path/fast-path.ts'
import { excludeFromDurations } from '../observability/answered-requests.ts'
import { exchangeOver } from '../requests/exchange.ts'
import { StallTimer, whileWatched } from '../requests/hang-up.ts'
import type { Service } from '../service.ts'

/** `Retry-After` of an empty answer. */
const EMPTY_RETRY_AFTER_SECONDS = '1'

export function pullRoute(
  app: FastifyInstance,
  service: Service,
  fastPath: FastPath,
  budget: AdmissionBudget,
): void {
  const { handOff, tableField, tokens, tracing } = service
  const write = pulledPartitionWriter(tableField)
  const stall = new StallTimer()
  const config = { access: 'pull' } as const

  const pull = tracing.serve('GET /pull', async ({ asked, socket, answer }) => {
    const quotaKey = () => budget.quotaKeyOf(asked.headers, socket)
    const token = tokens.of(asked.headers)
    const order = pullWithinLimits(token, asked.pull)
    const hangUpsAreRead = stall.noteRequest()
    let isRevoked = false
    const whenRevoked = (end: () => void) =>
      tokens.watch(asked.headers, () => {
        isRevoked = true
        end()
      })
    const { partitions: handedOut, waited } = await budget.waiting.within(
      order.waitMillis,
      quotaKey,
      (waitMillis) =>
        whileWatched(
          socket,
          waitMillis > 0,
          (signal) => handOff.pull({ ...order, waitMillis }, signal),
          whenRevoked,
        ),
    )
    const partitions = handedOutWithinLimits(token, handedOut)
    if (isRevoked && partitions.length === 0) throw revoked()
    if (hangUpsAreRead !== undefined) await hangUpsAreRead()
    const more: string[] = []
    const { applied } = asked.preferences
    if (applied !== '') more.push('preference-applied', applied)
    if (partitions.length === 0) more.push('retry-after', EMPTY_RETRY_AFTER_SECONDS)
    answer(`{"partitions":${write(partitions)}}`, more, () => {
      // With a key, the client retries and gets the same leases.
      if (order.key === null) handOff.undo(partitions)
    })
    return { waited }
  })
  fastPath.open('GET', app.prefix, '/pull', config.access, pull)

  app.route({
    method: 'GET',
    url: '/pull',
    config,
    exposeHeadRoute: false,
    schema: {
      operationId: 'pull',
      summary: 'Take the next partitions under a lease',
      tags: ['hand-off'],
      headers: Type.Object(pullHeaders),
      querystring: Type.Object(pullParameters),
      response: answers(
        pullAnswerSchema(tableField),
        'What was handed out; an empty array when nothing is ready',
      ),
    },
    handler: async (request, reply) => {
      const { waited } = await pull(exchangeOver(request.raw, reply.raw, service), undefined)
      if (waited) excludeFromDurations(reply)
      return reply.hijack()
    },
  })

  // Caches, monitors and link checkers send HEAD: it must never lease.
  app.route({
    method: 'HEAD',
    url: '/pull',
    config,
    schema: { hide: true },
    handler: (_request, reply) => reply.type(JSON_TYPE).send(),
  })
}
