import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '../../handoff/log.ts'
import type { AccessRule, Urgency } from '../admission/access.ts'
import { networkOf, type Proxies } from '../admission/proxies.ts'
import { userOf } from '../admission/proxy-users.ts'
import type { TokenLookup } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import { ConnectionGate } from './connections.ts'
import { type ClientLimits, ReachedLimits } from './limits.ts'
import { RateLimit } from './rate-limit.ts'
import { ReceivedBytes } from './received-bytes.ts'
import { UnreadAnswers } from './unread-answers.ts'
import { WaitQuota } from './wait-quota.ts'

/** The event loop delay from which each kind is refused, as a multiple of the threshold. */
const refusedFrom: Readonly<Record<Urgency, number>> = { 'call-back': 1, view: 2, pull: 4, urgent: 8 }
/** So many late samples in a row are an overload. One slow iteration, or a suspended process, is not. */
const LOOKS = 3

/** Decides from the event loop delay which requests are refused. */
export class Overload {
  readonly #thresholdMillis: number
  readonly #late: number[] = Array(LOOKS).fill(0)
  #times = 0

  constructor(thresholdMillis: number) {
    this.#thresholdMillis = thresholdMillis
  }

  /** Records a sample of the event loop delay. */
  note(lateMillis: number): void {
    this.#late.shift()
    this.#late.push(lateMillis)
    this.#times = Math.min(...this.#late) / this.#thresholdMillis
  }

  get isBehind(): boolean {
    return this.#times >= 1
  }

  refuses(urgency: Urgency): boolean {
    return this.#times >= refusedFrom[urgency]
  }
}

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
  readonly reached: ReachedLimits
  readonly connections: ConnectionGate
  readonly unread: UnreadAnswers
  readonly received: ReceivedBytes
  readonly waiting: WaitQuota
  readonly overload: Overload
  readonly #tokens: Pick<TokenLookup, 'nameOf'>
  readonly #proxies: Proxies
  readonly #rate: RateLimit

  constructor({ limits, tokens, proxies, log, waitingPulls }: LimiterOptions) {
    this.#tokens = tokens
    this.#proxies = proxies
    this.reached = new ReachedLimits(log)
    this.connections = new ConnectionGate(limits, this.reached, (address) => proxies.isTrusted(address))
    this.unread = new UnreadAnswers(this.connections, limits, this.reached)
    this.received = new ReceivedBytes(limits.receivedBytes, this.reached)
    this.waiting = new WaitQuota(limits, waitingPulls, this.reached)
    this.overload = new Overload(limits.overloadMillis)
    this.#rate = new RateLimit(limits.requestsPerSecond)
  }

  stop(): void {
    this.unread.stop()
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
    throw new RequestProblem('rate_limited', `${who} can send ${this.#rate.perSecond} requests per second`, {
      headers: { 'retry-after': String(Math.ceil(seconds)) },
    })
  }
}

/** Refuses requests, after admission, while the node is overloaded, or above the rate limit. */
export function shedding({ urgency }: AccessRule, limiter: ClientLimiter) {
  return ({ raw }: FastifyRequest, _reply: FastifyReply, done: () => void): void => {
    if (!limiter.isOpen) limiter.check(urgency, raw.headers, raw.socket)
    done()
  }
}
