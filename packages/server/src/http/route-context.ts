import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { readTraceparent, type UnknownFields } from '@baton/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Cluster } from '../cluster/open-cluster.ts'
import type { HandOff } from '../handoff/hand-off.ts'
import type { Log } from '../handoff/log.ts'
import type { Requester } from '../handoff/rules/stamps.ts'
import type { AddressRule } from '../webhooks/address-rule.ts'
import type { Deliverer } from '../webhooks/deliverer.ts'
import type { LiveSubscriptions } from '../webhooks/subscriptions-file.ts'
import type { TokenLookup } from './admission/tokens.ts'
import type { Serve } from './requests/exchange.ts'
import type { KeyOwner } from './requests/preferences.ts'

/** The dependencies of the routes. */
export interface RouteContext {
  readonly handOff: HandOff
  readonly log: Log
  readonly tableField: string
  readonly unknownFields: UnknownFields
  /** Where the log of an attempt is found, with placeholders; null: not configured. */
  readonly logUrl: string | null
  readonly callBackLimitBytes: number
  readonly callBackLevels: number
  readonly keyOwner: KeyOwner
  readonly tokens: TokenLookup
  /** For the audit. `body` is what the request asked for; omit it if it may contain secrets. */
  requesterOf(request: IncomingMessage, body?: unknown): Requester
  /** Whether the service serves TLS. */
  readonly isSecure: boolean
  readonly webhooks: Webhooks
  /** The default of `target` in `/scale`, and the target of `baton_desired_workers`. */
  readonly scaleTargetSeconds: number
  readonly tracing: RequestTracing
  /** Null: this node is the only one. */
  readonly cluster: Pick<Cluster, 'whenFollowerStops'> | null
}

export interface Webhooks {
  readonly rule: AddressRule
  /** Null: there is no subscriptions file. */
  readonly file: LiveSubscriptions | null
  readonly deliverer: Pick<Deliverer, 'counts' | 'broken'>
  readonly source: string
}

/** Of all routes but the call-back. Settles and renews name at most 10,000 leases, which need far less. */
export const DEFAULT_BODY_LIMIT_BYTES = 8 * 2 ** 20

type Handler<Result> = (request: FastifyRequest, reply: FastifyReply) => Promise<Result>

export interface RequestTracing {
  serve(name: string, serve: Serve): Serve
  handler<Result>(name: string, handler: Handler<Result>): Handler<Result>
  /** The traceparent that is stored with the partitions of a call-back and handed out with them. */
  traceparent(headers: IncomingHttpHeaders): string | null
  about(taskId: string): void
}

/** Used without a tracing SDK: creates no spans, but still keeps the traceparent of call-backs. */
export const untraced: RequestTracing = {
  serve: (_name, serve) => serve,
  handler: (_name, handler) => handler,
  traceparent: (headers) => readTraceparent(headers['traceparent']?.toString()),
  about: () => {},
}
