import type { IncomingHttpHeaders } from 'node:http'
import type { Server, Socket } from 'node:net'
import type { Log } from '../../handoff/log.ts'
import { RequestProblem } from '../answers/problems.ts'
import type { Callers } from '../requests/callers.ts'
import { networkOf } from './addresses.ts'
import { BoundsMet } from './bounds.ts'
import { ConnectionGate } from './connection-gate.ts'
import type { AdmissionLimits } from './limits.ts'
import { openFilesLimit } from './open-files.ts'
import { Overload, type Urgency } from './overload.ts'
import type { Proxies } from './proxies.ts'
import { RateLimit } from './rate-limit.ts'
import { ReceivedBytes } from './received-bytes.ts'
import { UnreadAnswers } from './unread-answers.ts'
import { WaitingShare } from './waiting-share.ts'

export const BEHIND = 'this node is behind with its work and refuses what can wait; send this again later'

interface BudgetOptions {
  readonly limits: AdmissionLimits
  readonly callers: Pick<Callers, 'nameOf'>
  readonly proxies: Proxies
  readonly log: Log
  /** How many pulls wait on this node. */
  readonly waitingPulls: () => number
}

/** All that bounds what callers ask for at once, the same for both ways that requests take. */
export class AdmissionBudget {
  readonly limits: AdmissionLimits
  readonly met: BoundsMet
  readonly received: ReceivedBytes
  readonly waiting: WaitingShare
  readonly overload: Overload
  readonly #callers: Pick<Callers, 'nameOf'>
  readonly #proxies: Proxies
  readonly #gate: ConnectionGate
  readonly #unread: UnreadAnswers
  readonly #rate: RateLimit

  constructor({ limits, callers, proxies, log, waitingPulls }: BudgetOptions) {
    this.limits = limits
    this.#callers = callers
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

  /** From here on connections of `server` come here first. */
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

  /** By whom pulls and requests are counted: the name of the token, or without tokens the address. */
  callerOf(headers: IncomingHttpHeaders, socket: Socket): string {
    const name = this.#callers.nameOf(headers)
    if (name !== null) return `token ${name}`
    return networkOf(this.#proxies.addressOf(socket, headers) ?? 'gone')
  }

  /** Whether nothing has to be looked at for a request to be served. */
  get isOpen(): boolean {
    return !this.#rate.isOn && !this.overload.isBehind
  }

  /** Throws the problem with which a request must be refused now. */
  check(urgency: Urgency, headers: IncomingHttpHeaders, socket: Socket): void {
    if (this.overload.refuses(urgency)) {
      this.met.met('overload', socket.remoteAddress)
      throw new RequestProblem('overloaded', BEHIND)
    }
    if (!this.#rate.isOn) return
    const seconds = this.#rate.secondsToWait(this.callerOf(headers, socket))
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
