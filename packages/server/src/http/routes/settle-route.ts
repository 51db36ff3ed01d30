import {
  checkSettlements,
  MAX_KEPT_REASON_LENGTH,
  type Preferences,
  type Settlement,
  settleAnswerSchema,
  settleRequestSchema,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { Settled } from '../../handoff/requests.ts'
import type { SettlementOrder } from '../../handoff/rules/settlement.ts'
import { handedOutWithinLimits, pullWithinLimits } from '../admission/token-limits.ts'
import type { Token } from '../admission/tokens.ts'
import { brokenContract, RequestProblem } from '../answers/problems.ts'
import { pulledPartitionWriter, refusalsJson } from '../answers/views.ts'
import { answers, pullHeaders, pullParameters } from '../api-document/route-schemas.ts'
import type { AdmissionBudget } from '../budget/budget.ts'
import type { FastPath } from '../fast-path/fast-path.ts'
import { excludeFromDurations } from '../observability/answered-requests.ts'
import { exchangeOver } from '../requests/exchange.ts'
import { StallTimer, whileWatched } from '../requests/hang-up.ts'
import { LEASE_LIMIT_BYTES, type Service } from '../service.ts'

export function settleRoute(
  app: FastifyInstance,
  service: Service,
  fastPath: FastPath,
  budget: AdmissionBudget,
): void {
  const { handOff, tableField, tokens, tracing } = service
  const write = pulledPartitionWriter(tableField)
  const stall = new StallTimer()
  const config = { access: 'worker' } as const
  const parkedJson = (parked: readonly string[]) =>
    parked.length === 0 ? '' : `"parked":${JSON.stringify(parked)},`
  const settledJson = (token: Token | null, { settled, parked, refused, pulled }: Settled) => {
    const partitions = handedOutWithinLimits(token, pulled?.partitions ?? [])
    return `{"settled":${JSON.stringify(settled)},${parkedJson(parked)}"refused":${refusalsJson(refused)},"partitions":${write(partitions)}}`
  }

  const settle = tracing.serve('POST /settle', async ({ asked, socket, answer }, body) => {
    const checked = checkSettlements(body)
    if (!checked.ok) throw brokenContract('the settlements break the contract', checked)
    const token = tokens.of(asked.headers)
    const pull = asksToPull(asked.preferences) ? pullWithinLimits(token, asked.pull) : null
    if (pull === null) {
      asked.checkKey()
      if (asked.chooses)
        throw new RequestProblem(
          'parameter_invalid',
          'table and task say what a settle may pull, and this one pulls nothing; add batch=1 to pull',
        )
    }
    const order = {
      instance: asked.instance,
      tables: token?.tables ?? null,
      settlements: checked.settlements.map(settlementOf),
      pull,
    }
    const hangUpsAreRead = pull === null ? undefined : stall.noteRequest()
    const quotaKey = () => budget.quotaKeyOf(asked.headers, socket)
    // If the token is revoked, the wait ends. The settlements are committed by then, and are answered.
    const outcome = await budget.waiting.within(pull?.waitMillis ?? 0, quotaKey, (waitMillis) => {
      const bounded = pull === null ? order : { ...order, pull: { ...pull, waitMillis } }
      return whileWatched(
        socket,
        waitMillis > 0,
        (signal) => handOff.settle(bounded, signal),
        (end) => tokens.watch(asked.headers, end),
      )
    })
    if (hangUpsAreRead !== undefined) await hangUpsAreRead()
    const { applied } = asked.preferences
    const more = pull === null || applied === '' ? [] : ['preference-applied', applied]
    const lost = () => {
      // With a key, the client repeats the settle and gets the same leases.
      if (pull?.key === null) handOff.undo(outcome.pulled?.partitions ?? [])
    }
    answer(settledJson(token, outcome), more, pull === null ? null : lost)
    return { waited: outcome.pulled?.waited ?? false }
  })
  fastPath.open('POST', app.prefix, '/settle', config.access, settle)

  app.route({
    method: 'POST',
    url: '/settle',
    bodyLimit: LEASE_LIMIT_BYTES,
    config,
    schema: {
      operationId: 'settle',
      summary: 'Say how the work under leases ended, and optionally pull in the same request',
      tags: ['hand-off'],
      headers: Type.Object(pullHeaders),
      querystring: Type.Object(pullParameters),
      body: settleRequestSchema,
      response: answers(settleAnswerSchema(tableField), 'What became of each settlement'),
    },
    handler: async (request, reply) => {
      const { waited } = await settle(exchangeOver(request.raw, reply.raw, service), request.body)
      if (waited) excludeFromDurations(reply)
      return reply.hijack()
    },
  })
}

function asksToPull({ batch, waitSeconds, records }: Preferences): boolean {
  return batch !== undefined || waitSeconds !== undefined || records !== undefined
}

function settlementOf({ leaseId, outcome, reason, retryAfterSeconds, final, records }: Settlement): {
  leaseId: string
  order: SettlementOrder
} {
  return {
    leaseId,
    order: {
      outcome,
      reason: reason === undefined ? null : kept(reason),
      retryAfterMillis: retryAfterSeconds === undefined ? null : retryAfterSeconds * 1000,
      final: final ?? false,
      records: records ?? null,
    },
  }
}

/**
 * Truncates long reasons such as stack traces instead of refusing the settlement, and does not split a
 * surrogate pair.
 */
function kept(reason: string): string {
  if (reason.length <= MAX_KEPT_REASON_LENGTH) return reason
  return reason.slice(0, MAX_KEPT_REASON_LENGTH).replace(/[\ud800-\udbff]$/, '')
}
