import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Stopwatch } from '../handoff/clock.ts'
import type { LeaderRow } from '../handoff/stored.ts'

/** How late a request may arrive, by the database's clock, which both sides know. */
const FRESH_MILLIS = 60_000
/** How far the requests of a node may arrive out of order. */
const NUMBERS_KEPT = 16_384

export type SignatureFault = 'unsigned' | 'stale' | 'repeated'

/** Part of every signed text. */
export interface Signed {
  /** The ids of the sending and of the receiving node. */
  readonly from: string
  readonly to: string
  readonly number: number
}

interface Sender {
  readonly numbers: Float64Array
  heardAt: number
}

/**
 * Authenticates nodes to each other: a signature proves that the sender can read the database, without
 * sending the secret. It covers both nodes, the time and a number that is used once, so a recorded request
 * cannot be replayed.
 */
export class PeerSignature {
  readonly nodeId: string
  readonly #stopwatch: Stopwatch
  readonly #senders = new Map<string, Sender>()
  #secret = ''
  #clusterId = ''
  #ahead = 0
  #number = 0

  constructor(nodeId: string, stopwatch: Stopwatch = () => performance.now()) {
    this.nodeId = nodeId
    this.#stopwatch = stopwatch
  }

  learn({ secret, clusterId, now }: LeaderRow): void {
    this.#secret = secret
    this.#clusterId = clusterId
    this.#ahead = now - this.#stopwatch()
  }

  /** The database's clock, as far as this node knows it. */
  get now(): number {
    return Math.round(this.#stopwatch() + this.#ahead)
  }

  /** Signs the content together with `covered`, which is not sent with it. */
  sign<Content extends object>(to: string, content: Content, covered: string): string {
    this.#number += 1
    const signed = { ...content, from: this.nodeId, to, number: this.#number, time: this.now }
    const text = Buffer.from(JSON.stringify(signed)).toString('base64url')
    return `${text}.${this.#mac(text, covered)}`
  }

  check<Content extends object>(header: unknown, covered: string): (Content & Signed) | SignatureFault {
    if (typeof header !== 'string' || this.#secret === '') return 'unsigned'
    const [text = '', mac = ''] = header.split('.', 2)
    if (!isSame(this.#mac(text, covered), mac)) return 'unsigned'
    const signed: Content & Signed & { time: number } = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (Math.abs(this.now - signed.time) > FRESH_MILLIS) return 'stale'
    return this.#isNew(signed.from, signed.number) ? signed : 'repeated'
  }

  #mac(text: string, covered: string): string {
    return createHmac('sha256', this.#secret)
      .update(`baton ${this.#clusterId} ${text}\n${covered}`)
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

function isSame(mac: string, given: string): boolean {
  const [a, b] = [Buffer.from(mac), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}
