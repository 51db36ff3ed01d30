import type { IncomingHttpHeaders } from 'node:http'
import type { Server, Socket } from 'node:net'
import type { Log } from '../../handoff/log.ts'
import type { Urgency } from '../admission/access.ts'
import type { Proxies } from '../admission/proxies.ts'
import { networkOf } from '../admission/proxies.ts'
import type { TokenLookup } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import { type AdmissionLimits, BoundsMet } from './bounds.ts'
import { ConnectionGate, openFilesLimit } from './connection-gate.ts'
import { Overload } from './overload.ts'
import { ReceivedBytes } from './received-bytes.ts'
import { UnreadAnswers } from './unread-answers.ts'

type Limits = Pick<AdmissionLimits, 'waitingPulls' | 'waitingPullsPerCaller'>

/**
 * Bounds the pulls that wait for work, in total and per caller, so that one caller cannot use the whole
 * capacity.
 */
class WaitingShare {
  readonly #limits: Limits
  readonly #waiting: () => number
  readonly #met: BoundsMet
  readonly #byCaller = new Map<string, number>()

  /** `waiting` returns the number of pulls that wait on this node. */
  constructor(limits: Limits, waiting: () => number, met: BoundsMet) {
    this.#limits = limits
    this.#waiting = waiting
    this.#met = met
  }

  /** Runs a pull with the requested wait, or without waiting if too many pulls wait already. */
  within<Result>(
    waitMillis: number,
    callerOf: () => string,
    pull: (waitMillis: number) => Promise<Result>,
  ): Promise<Result> {
    if (waitMillis <= 0) return pull(0)
    const caller = callerOf()
    const count = this.#byCaller.get(caller) ?? 0
    const bound = this.#boundFor(count)
    if (bound !== undefined) {
      this.#met.met(bound)
      return pull(0)
    }
    this.#byCaller.set(caller, count + 1)
    return pull(waitMillis).finally(() => this.#leave(caller))
  }

  #boundFor(ofCaller: number): 'caller-waiting-pulls' | 'waiting-pulls' | undefined {
    if (ofCaller >= this.#limits.waitingPullsPerCaller) return 'caller-waiting-pulls'
    return this.#waiting() >= this.#limits.waitingPulls ? 'waiting-pulls' : undefined
  }

  #leave(caller: string): void {
    const left = (this.#byCaller.get(caller) ?? 1) - 1
    if (left === 0) this.#byCaller.delete(caller)
    else this.#byCaller.set(caller, left)
  }
}

/**
 * The maximum number of buckets. A caller that has been idle for a second has a full bucket, which can be
 * dropped.
 */
const MOST_CALLERS = 10_000

interface Bucket {
  left: number
  at: number
}

/** A token bucket per caller: `perSecond` requests per second, with a burst of one second's worth. */
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
  secondsToWait(caller: string, now = performance.now()): number {
    const bucket = this.#bucketOf(caller, now)
    const refilled = bucket.left + ((now - bucket.at) / 1000) * this.#perSecond
    bucket.left = Math.min(this.#capacity, refilled)
    bucket.at = now
    if (bucket.left < 1) return (1 - bucket.left) / this.#perSecond
    bucket.left -= 1
    return 0
  }

  #bucketOf(caller: string, now: number): Bucket {
    const known = this.#buckets.get(caller)
    if (known !== undefined) return known
    if (this.#buckets.size >= MOST_CALLERS) this.#forgetIdle(now)
    const bucket = { left: this.#capacity, at: now }
    this.#buckets.set(caller, bucket)
    return bucket
  }

  #forgetIdle(now: number): void {
    for (const [caller, { at }] of this.#buckets) if (now - at > 1000) this.#buckets.delete(caller)
    if (this.#buckets.size >= MOST_CALLERS) this.#buckets.clear()
  }
}

const BEHIND = 'this node is behind with its work and refuses what can wait; send this again later'

interface BudgetOptions {
  readonly limits: AdmissionLimits
  readonly tokens: Pick<TokenLookup, 'nameOf'>
  readonly proxies: Proxies
  readonly log: Log
  /** Returns the number of pulls that wait on this node. */
  readonly waitingPulls: () => number
}

/** All bounds on what callers use at once. Requests of the fast path and of Fastify share one instance. */
export class AdmissionBudget {
  readonly limits: AdmissionLimits
  readonly met: BoundsMet
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
    this.met = new BoundsMet(log)
    this.received = new ReceivedBytes(limits.receivedBytes, this.met)
    this.waiting = new WaitingShare(limits, waitingPulls, this.met)
    this.overload = new Overload(limits.overloadMillis)
    this.#gate = new ConnectionGate(limits, this.met, openFilesLimit(), (address) =>
      proxies.isTrusted(address),
    )
    this.#unread = new UnreadAnswers(this.#gate, limits, this.met)
    this.#rate = new RateLimit(limits.requestsPerSecond)
  }

  /** Checks connections of `server` before its own listeners get them. */
  before(server: Server): void {
    this.#gate.before(server)
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
   * The key by which pulls and requests are counted: the name of the token or, without tokens, the address.
   */
  quotaKeyOf(headers: IncomingHttpHeaders, socket: Socket): string {
    const name = this.#tokens.nameOf(headers)
    if (name !== null) return `token ${name}`
    return networkOf(this.#proxies.addressOf(socket, headers) ?? 'gone')
  }

  /** Whether requests can be served without calling `check`: there is no rate limit and no overload. */
  get isOpen(): boolean {
    return !this.#rate.isOn && !this.overload.isBehind
  }

  /** Throws a problem if the request must be refused now. */
  check(urgency: Urgency, headers: IncomingHttpHeaders, socket: Socket): void {
    if (this.overload.refuses(urgency)) {
      this.met.met('overload', socket.remoteAddress)
      throw new RequestProblem('overloaded', BEHIND)
    }
    if (!this.#rate.isOn) return
    const seconds = this.#rate.secondsToWait(this.quotaKeyOf(headers, socket))
    if (seconds === 0) return
    this.met.met('rate', socket.remoteAddress)
    throw tooManyRequests(this.limits.requestsPerSecond, seconds)
  }
}

export function tooManyRequests(perSecond: number, secondsToWait: number): RequestProblem {
  const who = 'the token, or without tokens the address,'
  return new RequestProblem('rate_limited', `${who} may send ${perSecond} requests a second`, {
    headers: { 'retry-after': String(Math.ceil(secondsToWait)) },
  })
}
