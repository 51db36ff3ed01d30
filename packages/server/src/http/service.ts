import type { UnknownFields } from '@baton/protocol'
import type { HandOff } from '../handoff/hand-off.ts'
import type { Log } from '../handoff/log.ts'
import type { AddressRule } from '../webhooks/address-rule.ts'
import type { Deliverer } from '../webhooks/deliverer.ts'
import type { LiveSubscriptions } from '../webhooks/subscriptions-file.ts'
import type { Callers, KeyOwner } from './requests/callers.ts'
import type { RequestTracing } from './requests/request-tracing.ts'

/** The dependencies of the routes. */
export interface Service {
  readonly handOff: HandOff
  readonly log: Log
  /** The name of the table field in the wire format. */
  readonly tableField: string
  readonly unknownFields: UnknownFields
  readonly callBackLimitBytes: number
  readonly callBackLevels: number
  readonly keyOwner: KeyOwner
  readonly callers: Callers
  /** Whether the service serves TLS. */
  readonly isSecure: boolean
  readonly webhooks: Webhooks
  /** The default of `target` in `/scale`, and the target of `baton_desired_workers`. */
  readonly scaleTargetSeconds: number
  readonly tracing: RequestTracing
}

export interface Webhooks {
  readonly rule: AddressRule
  /** Null: there is no subscriptions file. */
  readonly file: LiveSubscriptions | null
  readonly deliverer: Pick<Deliverer, 'counts' | 'broken'>
  /** The `source` attribute of the events. */
  readonly source: string
}

/** The body limit of settle and renew requests. They name at most 10,000 leases, which need far less. */
export const LEASE_LIMIT_BYTES = 8 * 2 ** 20

export const JSON_TYPE = 'application/json; charset=utf-8'
