import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { type Stopwatch, systemStopwatch } from '../handoff/clock.ts'
import type { LeaderRow } from './election.ts'

export const SIGNATURE_HEADER = 'x-baton-peer'

/** How late a request may arrive, by the database's clock, which both sides know. */
const FRESH_MILLIS = 60_000
/** How far the requests of a node may arrive out of order. */
const NUMBERS_KEPT = 1024

export type SignatureFault = 'unsigned' | 'stale' | 'repeated'

export interface SignedRequest {
  readonly from: string
  /** The id of the receiving node. */
  readonly to: string
  readonly number: number
  /** Digest of the body, which is read after the signature was checked. */
  readonly digest: string
}

interface Sender {
  readonly numbers: Float64Array
  heardAt: number
}

/**
 * Authenticates nodes to each other: it proves that the sender can read the database, without sending the
 * secret. A signature covers verb, body digest, both nodes, the time and a number that is used once, so a
 * recorded request cannot be replayed. The body is covered by its digest only, so an unsigned request is
 * refused before its body is read.
 */
export class PeerSignature {
  readonly nodeId: string
  readonly #stopwatch: Stopwatch
  readonly #senders = new Map<string, Sender>()
  #secret = ''
  #clusterId = ''
  #ahead = 0
  #number = 0

  constructor(nodeId: string, stopwatch: Stopwatch = systemStopwatch) {
    this.nodeId = nodeId
    this.#stopwatch = stopwatch
  }

  /** Called when the leader row was read. */
  learn({ secret, clusterId, now }: LeaderRow): void {
    this.#secret = secret
    this.#clusterId = clusterId
    this.#ahead = now - this.#stopwatch()
  }

  /** The header of a request, and the request's number. */
  sign(verb: string, to: string, digest: string): { header: string; number: number } {
    this.#number += 1
    const parts = [this.nodeId, to, Math.round(this.#now), this.#number, digest].join(' ')
    return { header: `${parts} ${this.#mac(verb, parts)}`, number: this.#number }
  }

  check(verb: string, header: unknown): SignedRequest | SignatureFault {
    if (typeof header !== 'string' || this.#secret === '') return 'unsigned'
    const end = header.lastIndexOf(' ')
    const parts = header.slice(0, Math.max(end, 0))
    if (!isSame(this.#mac(verb, parts), header.slice(end + 1))) return 'unsigned'
    const [from = '', to = '', time, numberText, digest = ''] = parts.split(' ')
    if (Math.abs(this.#now - Number(time)) > FRESH_MILLIS) return 'stale'
    const number = Number(numberText)
    return this.#isNew(from, number) ? { from, to, number, digest } : 'repeated'
  }

  /** The MAC of the leader's first line to a follower, by which the follower authenticates it. */
  signHello(term: string, asked: Pick<SignedRequest, 'from' | 'number'>, node = this.nodeId): string {
    return this.#mac('hello', [node, asked.from, asked.number, term].join(' '))
  }

  isHello(mac: string, term: string, node: string, number: number): boolean {
    return isSame(this.signHello(term, { from: this.nodeId, number }, node), mac)
  }

  get #now(): number {
    return this.#stopwatch() + this.#ahead
  }

  #mac(verb: string, parts: string): string {
    return createHmac('sha256', this.#secret)
      .update(`baton ${this.#clusterId} ${verb} ${parts}`)
      .digest('base64url')
  }

  /** Accepts each number once: it has a slot, and a slot accepts only increasing numbers. */
  #isNew(from: string, number: number): boolean {
    const now = this.#stopwatch()
    let sender = this.#senders.get(from)
    if (sender === undefined) {
      // Requests of the senders that are forgotten here are stale by now, so they cannot be replayed.
      for (const [name, { heardAt }] of this.#senders)
        if (now - heardAt > 3 * FRESH_MILLIS) this.#senders.delete(name)
      sender = { numbers: new Float64Array(NUMBERS_KEPT), heardAt: now }
      this.#senders.set(from, sender)
    }
    sender.heardAt = now
    const place = number % NUMBERS_KEPT
    if (!(number > (sender.numbers[place] ?? Number.POSITIVE_INFINITY))) return false
    sender.numbers[place] = number
    return true
  }
}

export const digestOf = (body: string | Buffer): string => hash('sha256', body, 'base64url')

function isSame(mac: string, given: string): boolean {
  const [a, b] = [Buffer.from(mac), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}
