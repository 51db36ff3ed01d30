import {
  checkRenewal,
  checkSettlements,
  MAX_KEPT_NOTE_LENGTH,
  MAX_KEPT_REASON_LENGTH,
  type Preferences,
  pullAnswerSchema,
  type Renewal,
  renewAnswerSchema,
  renewRequestSchema,
  type Settlement,
  settleAnswerSchema,
  settleRequestSchema,
} from '@baton/protocol'
import type { FastifyInstance, FastifySchema } from 'fastify'
import Type from 'typebox'
import type { ReportedOutcome } from '../../handoff/rules/settlement.ts'
import { truncated } from '../../handoff/rules/truncated.ts'
import type { EmptyBecause, RenewalRequest, Settled } from '../../handoff/store.ts'
import type { CheckedAccess } from '../admission/access.ts'
import { handedOutWithinLimits, pullWithinLimits } from '../admission/token-limits.ts'
import { revoked, type Token } from '../admission/tokens.ts'
import { JSON_TYPE } from '../answers/headers.ts'
import { brokenContract, invalidRequest } from '../answers/problems.ts'
import { pulledPartitionWriter, refusalsJson } from '../answers/pull-answer.ts'
import { secondsOf, timestampOf } from '../answers/wire-values.ts'
import { answers, instanceHeader, pullHeaders, pullParameters } from '../api-document/route-schemas.ts'
import type { FastPath } from '../fast-path/fast-path.ts'
import { admittedRequestOf, NotServed } from '../forwarded-client.ts'
import type { ClientLimiter } from '../limits/limiter.ts'
import { excludeFromDurations } from '../observability/answered-requests.ts'
import { whileWatched } from '../requests/disconnects.ts'
import { type Exchange, exchangeOver, type Serve } from '../requests/exchange.ts'
import { instanceOf } from '../requests/preferences.ts'
import { StallTimer } from '../requests/stall-timer.ts'
import type { RouteContext } from '../route-context.ts'

const becauseJson = (because: EmptyBecause | undefined): string =>
  because === undefined ? '' : `,"because":${JSON.stringify(because)}`

const EMPTY_RETRY_AFTER_SECONDS = '1'

/** Runs a request that may wait for work, within the limits on waiting, and ends the wait when it must. */
function waiter({ tokens, cluster }: RouteContext, limiter: ClientLimiter) {
  return <Result>(
    { head: { headers, queryLength }, socket }: Exchange,
    wantedMillis: number,
    work: (waitMillis: number, signal?: AbortSignal) => Promise<Result>,
    revokedMeanwhile: () => void = () => undefined,
  ): Promise<Result> => {
    if (wantedMillis === 0) return work(0)
    const forwarded = admittedRequestOf(headers)
    const orWhen = (end: () => void) => {
      const unwatch = tokens.watch(headers, () => {
        revokedMeanwhile()
        end()
      })
      // The follower that forwarded the request may stop.
      const unwatchFollower =
        cluster === null || forwarded === undefined
          ? undefined
          : cluster.whenFollowerStops(forwarded.from, end)
      return () => {
        unwatch()
        unwatchFollower?.()
      }
    }
    // A forwarded request has already waited at the follower, for a leader.
    const waitMillis = Math.max(0, wantedMillis - (forwarded?.waitedMillis ?? 0))
    const quotaKeyOf = () => limiter.quotaKeyOf(headers, socket)
    return limiter.waiting.within({ waitMillis, queryBytes: queryLength, quotaKeyOf }, (millis) =>
      whileWatched(socket, (signal) => work(millis, signal), orWhen),
    )
  }
}

/** A route that the fast path serves, too. */
function exchangeRoute(
  app: FastifyInstance,
  context: RouteContext,
  fastPath: FastPath,
  method: 'GET' | 'POST',
  url: string,
  access: CheckedAccess,
  serve: Serve,
  described: FastifySchema,
): void {
  fastPath.addRoute(method, app.prefix, url, access, serve)
  app.route({
    method,
    url,
    config: { access },
    // Caches, monitors and link checkers send HEAD: it must never lease.
    exposeHeadRoute: false,
    schema: {
      tags: ['hand-off'],
      headers: Type.Object(pullHeaders),
      querystring: Type.Object(pullParameters),
      ...described,
    },
    handler: async (request, reply) => {
      const { waited } = await serve(exchangeOver(request.raw, reply.raw, context), request.body)
      if (waited) excludeFromDurations(reply)
      return reply.hijack()
    },
  })
}

export function pullRoute(
  app: FastifyInstance,
  context: RouteContext,
  fastPath: FastPath,
  limiter: ClientLimiter,
): void {
  const { handOff, tableField, tokens, tracing } = context
  const write = pulledPartitionWriter(tableField)
  const stall = new StallTimer()
  const waiting = waiter(context, limiter)

  const pull = tracing.serve('GET /pull', async (exchange) => {
    const { head, answer } = exchange
    const token = tokens.of(head.headers)
    const request = pullWithinLimits(token, head.pull)
    const afterNextIteration = stall.noteRequest()
    let isRevoked = false
    const pulled = await waiting(
      exchange,
      request.waitMillis,
      (waitMillis, signal) => handOff.pull({ ...request, waitMillis }, signal),
      () => {
        isRevoked = true
      },
    )
    const { waited, because } = pulled
    const partitions = handedOutWithinLimits(token, pulled.partitions)
    if (isRevoked && partitions.length === 0) throw revoked()
    // The next leader serves it.
    if (handOff.isDraining && partitions.length === 0 && admittedRequestOf(head.headers) !== undefined)
      throw new NotServed('not_leading')
    if (afterNextIteration !== undefined) await afterNextIteration()
    const more: string[] = []
    const { applied } = head.preferences
    if (applied !== '') more.push('preference-applied', applied)
    if (partitions.length === 0) more.push('retry-after', EMPTY_RETRY_AFTER_SECONDS)
    answer(`{"partitions":${write(partitions)}${becauseJson(because)}}`, more, () => {
      // With a key, the client retries and gets the same leases.
      if (request.key === null) handOff.undo(partitions)
    })
    return { waited }
  })
  exchangeRoute(app, context, fastPath, 'GET', '/pull', 'pull', pull, {
    operationId: 'pull',
    summary: 'Lease the next partitions',
    response: answers(
      pullAnswerSchema(tableField),
      'The partitions that were handed out; an empty array if none is ready',
    ),
  })

  app.route({
    method: 'HEAD',
    url: '/pull',
    config: { access: 'pull' },
    schema: { hide: true },
    handler: (_request, reply) => reply.type(JSON_TYPE).send(),
  })
}

export function settleRoute(
  app: FastifyInstance,
  context: RouteContext,
  fastPath: FastPath,
  limiter: ClientLimiter,
): void {
  const { handOff, tableField, tokens, tracing } = context
  const write = pulledPartitionWriter(tableField)
  const stall = new StallTimer()
  const waiting = waiter(context, limiter)
  const parkedJson = (parked: readonly string[]) =>
    parked.length === 0 ? '' : `"parked":${JSON.stringify(parked)},`
  const settledJson = (token: Token | null, { settled, parked, refused, pulled }: Settled) => {
    const partitions = handedOutWithinLimits(token, pulled?.partitions ?? [])
    return `{"settled":${JSON.stringify(settled)},${parkedJson(parked)}"refused":${refusalsJson(refused)},"partitions":${write(partitions)}${becauseJson(pulled?.because)}}`
  }

  const settle = tracing.serve('POST /settle', async (exchange, body) => {
    const { head, answer } = exchange
    const checked = checkSettlements(body)
    if (!checked.ok) throw brokenContract('the settlements violate the contract', checked)
    const token = tokens.of(head.headers)
    const pull = asksToPull(head.preferences) ? pullWithinLimits(token, head.pull) : null
    if (pull === null) {
      head.checkKey()
      if (head.chooses)
        throw invalidRequest(
          'table and task select the partitions that a settle pulls, and this settle pulls none; add batch=1 to pull',
        )
    }
    const request = {
      instance: head.instance,
      tables: token?.tables ?? null,
      settlements: checked.settlements.map(settlementOf),
      pull,
    }
    const afterNextIteration = pull === null ? undefined : stall.noteRequest()
    // If the token is revoked, the wait ends. The settlements are committed by then, and are answered.
    const outcome = await waiting(exchange, pull?.waitMillis ?? 0, (waitMillis, signal) =>
      handOff.settle(pull === null ? request : { ...request, pull: { ...pull, waitMillis } }, signal),
    )
    if (afterNextIteration !== undefined) await afterNextIteration()
    const { applied } = head.preferences
    const more = pull === null || applied === '' ? [] : ['preference-applied', applied]
    if (outcome.pulled?.because !== undefined) more.push('retry-after', EMPTY_RETRY_AFTER_SECONDS)
    const lost = () => {
      // With a key, the client repeats the settle and gets the same leases.
      if (pull?.key === null) handOff.undo(outcome.pulled?.partitions ?? [])
    }
    answer(settledJson(token, outcome), more, pull === null ? null : lost)
    return { waited: outcome.pulled?.waited ?? false }
  })
  exchangeRoute(app, context, fastPath, 'POST', '/settle', 'worker', settle, {
    operationId: 'settle',
    summary: 'Settle leases, and optionally pull in the same request',
    body: settleRequestSchema,
    response: answers(settleAnswerSchema(tableField), 'The result for each settlement'),
  })
}

function asksToPull({ batch, waitSeconds, records }: Preferences): boolean {
  return batch !== undefined || waitSeconds !== undefined || records !== undefined
}

/** Long reasons such as stack traces are truncated instead of refusing the settlement. */
function settlementOf(settlement: Settlement): {
  leaseId: string
  reported: ReportedOutcome
} {
  const { leaseId, outcome, reason, retryAfterSeconds, final, records, checkpoint } = settlement
  return {
    leaseId,
    reported: {
      outcome,
      reason: reason === undefined ? null : truncated(reason, MAX_KEPT_REASON_LENGTH),
      retryAfterMillis: retryAfterSeconds === undefined ? null : retryAfterSeconds * 1000,
      final: final ?? false,
      records: records ?? null,
      ...(checkpoint === undefined ? {} : { checkpoint }),
    },
  }
}

function renewalOf({ leaseId, progress, checkpoint }: Renewal): RenewalRequest {
  return {
    leaseId,
    ...(checkpoint === undefined ? {} : { checkpoint }),
    ...(progress === undefined ? {} : { progress: reportedProgress(progress) }),
  }
}

const reportedProgress = ({ records, note }: NonNullable<Renewal['progress']>) => ({
  records: records ?? null,
  note: note === undefined ? null : truncated(note, MAX_KEPT_NOTE_LENGTH),
})

export function renewRoute(app: FastifyInstance, { handOff, tokens, tracing }: RouteContext): void {
  app.route({
    method: 'POST',
    url: '/renew',
    config: { access: 'worker' },
    schema: {
      operationId: 'renew',
      summary: 'Extend leases to their full length from now',
      tags: ['hand-off'],
      headers: Type.Object(instanceHeader),
      body: renewRequestSchema,
      response: answers(renewAnswerSchema, 'The result for each lease'),
    },
    handler: tracing.handler('POST /renew', async (request, reply) => {
      const checked = checkRenewal(request.body)
      if (!checked.ok) throw brokenContract('the renewals violate the contract', checked)
      const renewals = await handOff.renew(
        checked.renewals.map(renewalOf),
        instanceOf(request.raw.headers),
        tokens.of(request.raw.headers)?.tables ?? null,
      )
      const renewed = []
      const refused = []
      for (const renewal of renewals) {
        const { leaseId } = renewal
        if (renewal.refused !== null) refused.push({ leaseId, code: renewal.refused })
        else {
          const { expiresAt, expiresInMillis } = renewal
          renewed.push({
            leaseId,
            expiresAt: timestampOf(expiresAt),
            expiresInSeconds: secondsOf(expiresInMillis),
          })
        }
      }
      return reply
        .type(JSON_TYPE)
        .send(`{"renewed":${JSON.stringify(renewed)},"refused":${refusalsJson(refused)}}`)
    }),
  })
}
