import type { IncomingHttpHeaders } from 'node:http'
import type { Server, Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { Log } from '../../handoff/log.ts'
import { accessRule, type Urgency } from '../admission/access.ts'
import { networkOf, type Proxies } from '../admission/proxies.ts'
import { userOf } from '../admission/proxy-users.ts'
import type { TokenLookup } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import { addRouteHook } from '../route-hooks.ts'
import { ConnectionGate, openFilesLimit } from './connections.ts'
import { type ClientLimits, type LimitName, ReachedLimits } from './limits.ts'
import { Overload } from './overload.ts'
import { RateLimit } from './rate-limit.ts'
import { ReceivedBytes } from './received-bytes.ts'
import { UnreadAnswers } from './unread-answers.ts'
import { WaitQuota } from './wait-quota.ts'

const BEHIND = 'this node is overloaded and refuses less urgent requests; send the request again later'

interface LimiterOptions {
  readonly limits: ClientLimits
  readonly tokens: Pick<TokenLookup, 'nameOf'>
  readonly proxies: Proxies
  readonly log: Log
  readonly waitingPulls: () => number
}

/** All limits of what clients use at once. Requests of the fast path and of Fastify share one instance. */
export class ClientLimiter {
  readonly limits: ClientLimits
  readonly reached: ReachedLimits
  readonly received: ReceivedBytes
  readonly waiting: WaitQuota
  readonly overload: Overload
  readonly #tokens: Pick<TokenLookup, 'nameOf'>
  readonly #proxies: Proxies
  readonly #gate: ConnectionGate
  readonly #unread: UnreadAnswers
  readonly #rate: RateLimit

  constructor({ limits, tokens, proxies, log, waitingPulls }: LimiterOptions) {
    this.limits = limits
    this.#tokens = tokens
    this.#proxies = proxies
    this.reached = new ReachedLimits(log)
    this.received = new ReceivedBytes(limits.receivedBytes, this.reached)
    this.waiting = new WaitQuota(limits, waitingPulls, this.reached)
    this.overload = new Overload(limits.overloadMillis)
    this.#gate = new ConnectionGate(limits, this.reached, openFilesLimit(), (address) =>
      proxies.isTrusted(address),
    )
    this.#unread = new UnreadAnswers(this.#gate, limits, this.reached)
    this.#rate = new RateLimit(limits.requestsPerSecond)
  }

  /** Checks connections of `server` before its own listeners get them. */
  interceptConnections(server: Server): void {
    this.#gate.interceptConnections(server)
  }

  /** Closes a connection whose request is not even read. Few of many can read the answer. */
  refuse(socket: Socket, limit: LimitName, answer: string): void {
    this.#gate.refuse(socket, limit, answer)
  }

  /** Another node forwards on this connection, for many clients. */
  exemptFromAddressLimit(socket: Socket): void {
    this.#gate.exemptFromAddressLimit(socket)
  }

  stop(): void {
    this.#unread.stop()
  }

  get connections(): number {
    return this.#gate.count
  }

  get unsentBytes(): number {
    return this.#unread.unsentBytes
  }

  /** What pulls and requests are counted by: the name of the token or user, or else the address. */
  quotaKeyOf(headers: IncomingHttpHeaders, socket: Socket): string {
    const name = this.#tokens.nameOf(headers)
    // A user may have the name of a token.
    if (name !== null) return `${userOf(headers) === undefined ? 'token' : 'user'} ${name}`
    return networkOf(this.#proxies.addressOf(socket, headers) ?? 'gone')
  }

  /** Whether requests can be served without calling `check`: there is no rate limit and no overload. */
  get isOpen(): boolean {
    return !this.#rate.isOn && !this.overload.isBehind
  }

  /** Throws a problem if the request must be refused now. */
  check(urgency: Urgency, headers: IncomingHttpHeaders, socket: Socket): void {
    if (this.overload.refuses(urgency)) {
      this.reached.note('overload', socket.remoteAddress)
      throw new RequestProblem('overloaded', BEHIND)
    }
    if (!this.#rate.isOn) return
    const seconds = this.#rate.secondsToWait(this.quotaKeyOf(headers, socket))
    if (seconds === 0) return
    this.reached.note('rate', socket.remoteAddress)
    const who = 'the token (without tokens: the client address)'
    throw new RequestProblem(
      'rate_limited',
      `${who} can send ${this.limits.requestsPerSecond} requests per second`,
      { headers: { 'retry-after': String(Math.ceil(seconds)) } },
    )
  }
}

/** Refuses requests, after admission, while the node is overloaded, or above the rate limit. */
export function shedRequests(app: FastifyInstance, limiter: ClientLimiter): void {
  app.addHook('onRoute', (route: RouteOptions) => {
    const rule = accessRule(route.config?.access)
    if (rule === undefined) return
    const check = (request: FastifyRequest, _reply: FastifyReply, done: (fault?: Error) => void): void => {
      if (limiter.isOpen) {
        done()
        return
      }
      try {
        limiter.check(rule.urgency, request.raw.headers, request.raw.socket)
        done()
      } catch (fault) {
        done(fault as Error)
      }
    }
    addRouteHook(route, 'onRequest', check, 'last')
  })
}
