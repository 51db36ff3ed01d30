import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { StoreUnavailable } from '../handoff/store.ts'
import type { Followers, PeerRefusal } from './followers.ts'
import {
  coveredText,
  FORWARDED_HEADER,
  type ForwardableRequest,
  type ForwardedAnswer,
  type ForwardedContent,
} from './forwarded-request.ts'
import type { Leadership } from './leadership.ts'
import type { PeerSignature, Signed } from './peer-signature.ts'

/** How often a request is sent when leaders refuse it one after another. */
const MOST_TRIES = 20

export type AdmittedRequest = ForwardedContent & Signed

/** Knows no framework; `http/forwarding.ts` adds it to the routes. */
export class Forwarder {
  readonly #leadership: Leadership
  readonly #followers: Followers
  readonly #signature: PeerSignature

  constructor(leadership: Leadership, followers: Followers, signature: PeerSignature) {
    this.#leadership = leadership
    this.#followers = followers
    this.#signature = signature
  }

  /** False: this node leads and serves it. Rejects without a leader, or if the outcome is unknown. */
  async forward(request: ForwardableRequest, answer: ForwardedAnswer): Promise<boolean> {
    for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
      const { link } = this.#leadership.leader ?? (await this.#leadership.whenLeaderFound())
      if (link === null) return false
      if (request.signal.aborted) return true
      if (await link.forward(request, answer)) return true
      // The leadership learns why.
      await nextIteration()
    }
    throw new StoreUnavailable('store_unavailable', 'nodes refuse the request: none of them is the leader')
  }

  /** A node that does not lead refuses it, so no request is forwarded twice. */
  admit(
    { method, target, headers }: Pick<ForwardableRequest, 'method' | 'target' | 'headers'>,
    socket: Socket,
  ): AdmittedRequest | PeerRefusal {
    const covered = coveredText(method, target, headers as IncomingHttpHeaders)
    const admitted = this.#signature.check<ForwardedContent>(headers[FORWARDED_HEADER], covered)
    if (typeof admitted === 'string') return admitted
    if (admitted.to !== this.#signature.nodeId || !this.#leadership.leads) return 'not_leading'
    this.#followers.track(socket)
    return admitted
  }
}
