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
import { type AdmissionLimits, ReachedBounds } from './bounds.ts'
import { ConnectionGate, openFilesLimit, UnreadAnswers } from './connections.ts'
import { ReceivedBytes } from './received-bytes.ts'

type Limits = Pick<AdmissionLimits, 'waitingPulls' | 'waitingPullsPerCaller'>

/**
 * The most bytes of queries that waiting pulls keep, in total and per quota key. A query may name 50 tables
 * and 50 tasks, and takes about five times its length in memory.
 */
const MOST_QUERY_BYTES = 16 * 2 ** 20
const MOST_QUERY_BYTES_PER_CALLER = MOST_QUERY_BYTES / 4

/** What waits under a quota key. */
interface Share {
  pulls: number
  queryBytes: number
}

/** The parts of a pull that decide whether it may wait. */
interface WaitWanted {
  readonly waitMillis: number
  readonly queryBytes: number
  readonly quotaKeyOf: () => string
}

/**
 * Bounds the pulls that wait for work, in total and per quota key, so that one token or address cannot use
 * the whole capacity.
 */
class WaitingShare {
  readonly #limits: Limits
  readonly #waiting: () => number
  readonly #reached: ReachedBounds
  readonly #byKey = new Map<string, Share>()
  #queryBytes = 0

  /** `waiting` returns the number of pulls that wait on this node. */
  constructor(limits: Limits, waiting: () => number, reached: ReachedBounds) {
    this.#limits = limits
    this.#waiting = waiting
    this.#reached = reached
  }

  /** Runs a pull with the requested wait, or without waiting if too many pulls wait already. */
  within<Result>(
    { waitMillis, queryBytes, quotaKeyOf }: WaitWanted,
    pull: (waitMillis: number) => Promise<Result>,
  ): Promise<Result> {
    if (waitMillis <= 0) return pull(0)
    const key = quotaKeyOf()
    const share = this.#byKey.get(key) ?? { pulls: 0, queryBytes: 0 }
    const bound = this.#boundFor(share, queryBytes)
    if (bound !== undefined) {
      this.#reached.note(bound)
      return pull(0)
    }
    const count = (pulls: number, bytes: number) => {
      share.pulls += pulls
      share.queryBytes += bytes
      this.#queryBytes += bytes
      if (share.pulls === 0) this.#byKey.delete(key)
      else this.#byKey.set(key, share)
    }
    count(1, queryBytes)
    return pull(waitMillis).finally(() => count(-1, -queryBytes))
  }

  #boundFor(share: Share, bytes: number): 'caller-waiting-pulls' | 'waiting-pulls' | undefined {
    const { waitingPulls, waitingPullsPerCaller } = this.#limits
    const isOver = (held: number, most: number) => bytes > 0 && held + bytes > most
    if (share.pulls >= waitingPullsPerCaller || isOver(share.queryBytes, MOST_QUERY_BYTES_PER_CALLER))
      return 'caller-waiting-pulls'
    if (this.#waiting() >= waitingPulls || isOver(this.#queryBytes, MOST_QUERY_BYTES)) return 'waiting-pulls'
    return undefined
  }
}

const BEHIND = 'this node is overloaded and refuses less urgent requests; send the request again later'

interface BudgetOptions {
  readonly limits: AdmissionLimits
  readonly tokens: Pick<TokenLookup, 'nameOf'>
  readonly proxies: Proxies
  readonly log: Log
  /** Returns the number of pulls that wait on this node. */
  readonly waitingPulls: () => number
}

/** All bounds on what clients use at once. Requests of the fast path and of Fastify share one instance. */
export class AdmissionBudget {
  readonly limits: AdmissionLimits
  readonly reached: ReachedBounds
  readonly received: ReceivedBytes
  readonly waiting: WaitingShare
  readonly overload: Overload
  readonly #tokens: Pick<TokenLookup, 'nameOf'>
  readonly #proxies: Proxies
  readonly #gate: ConnectionGate
  readonly #unread: UnreadAnswers
  readonly #rate: RateLimit

  constructor({ limits, tokens, proxies, log, waitingPulls }: BudgetOptions) {
    this.limits = limits
    this.#tokens = tokens
    this.#proxies = proxies
    this.reached = new ReachedBounds(log)
    this.received = new ReceivedBytes(limits.receivedBytes, this.reached)
    this.waiting = new WaitingShare(limits, waitingPulls, this.reached)
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

  /**
   * The key by which pulls and requests are counted: the name of the token or of the user or, without tokens,
   * the address.
   */
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
export function shedRequests(app: FastifyInstance, budget: AdmissionBudget): void {
  app.addHook('onRoute', (route: RouteOptions) => {
    const rule = accessRule(route.config?.access)
    if (rule === undefined) return
    const check = (request: FastifyRequest, _reply: FastifyReply, done: (fault?: Error) => void): void => {
      if (budget.isOpen) {
        done()
        return
      }
      try {
        budget.check(rule.urgency, request.raw.headers, request.raw.socket)
        done()
      } catch (fault) {
        done(fault as Error)
      }
    }
    addRouteHook(route, 'onRequest', check, 'last')
  })
}

/** The event loop delay from which each kind is refused, as a multiple of the threshold. */
const refusedFrom: Readonly<Record<Urgency, number>> = { 'call-back': 1, view: 2, pull: 4, urgent: 8 }
/**
 * The number of consecutive late samples that count as overload. A single slow iteration of the event loop,
 * or a suspended process, does not.
 */
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

/**
 * The maximum number of buckets. One that was not used for a second is full, and can be dropped.
 */
const MOST_BUCKETS = 10_000

interface Bucket {
  left: number
  at: number
}

/** A token bucket per quota key: `perSecond` requests per second, with a burst of one second's worth. */
export class RateLimit {
  readonly #perSecond: number
  readonly #capacity: number
  readonly #buckets = new Map<string, Bucket>()

  constructor(perSecond: number) {
    this.#perSecond = perSecond
    this.#capacity = Math.max(1, perSecond)
  }

  get isOn(): boolean {
    return this.#perSecond > 0
  }

  /** Returns zero when the request may be served, or else the seconds after which it may be retried. */
  secondsToWait(key: string, now = performance.now()): number {
    const bucket = this.#bucketOf(key, now)
    const refilled = bucket.left + ((now - bucket.at) / 1000) * this.#perSecond
    bucket.left = Math.min(this.#capacity, refilled)
    bucket.at = now
    if (bucket.left < 1) return (1 - bucket.left) / this.#perSecond
    bucket.left -= 1
    return 0
  }

  #bucketOf(key: string, now: number): Bucket {
    const known = this.#buckets.get(key)
    if (known !== undefined) return known
    if (this.#buckets.size >= MOST_BUCKETS) this.#forgetIdle(now)
    const bucket = { left: this.#capacity, at: now }
    this.#buckets.set(key, bucket)
    return bucket
  }

  #forgetIdle(now: number): void {
    for (const [key, { at }] of this.#buckets) if (now - at > 1000) this.#buckets.delete(key)
    if (this.#buckets.size >= MOST_BUCKETS) this.#buckets.clear()
  }
}
