import type { Urgency } from '../admission/overload.ts'
import { queryOf, type Serve } from '../requests/exchange.ts'
import type { KeyOwner } from '../requests/key-owner.ts'
import type { RouteCounts } from '../requests/request-counts.ts'
import { AskedInHeaders } from '../requests/request-headers.ts'
import { LONGEST_PLAIN_HEAD, type PlainHead, readPlainHead } from './plain-head.ts'

/** A client has one head for its pulls, and one for its settles of each length; lease ids differ by a character or two. */
const KNOWN_HEADS = 4

export interface ExpressRoute {
  readonly serve: Serve
  readonly counts: RouteCounts
  readonly urgency: Urgency
}

/** Undefined: the express lane does not serve it. Depends on nothing but the head, and not on its key. */
export type RouteOf = (head: PlainHead) => ExpressRoute | undefined

/** A request as its head has it. */
export interface ExpressRequest extends ExpressRoute, Pick<PlainHead, 'method' | 'url' | 'bodyBytes'> {
  readonly asked: AskedInHeaders
  readonly headBytes: number
}

/**
 * What the last requests of a connection began with, and what that came to. Workers send the same head again and again;
 * only the key of a pull is another each time. So heads are compared as the bytes around the key, and not read anew:
 * reading took a sixth of the time of a pull with a key and a settle.
 */
export class KnownHeads {
  readonly #routeOf: RouteOf
  readonly #keyOwner: KeyOwner
  readonly #known: KnownHead[] = []

  constructor(routeOf: RouteOf, keyOwner: KeyOwner) {
    this.#routeOf = routeOf
    this.#keyOwner = keyOwner
  }

  /** The request at the beginning of `bytes`. Undefined when it is not a plain one, or has no route here. */
  read(bytes: Buffer): ExpressRequest | undefined {
    for (const known of this.#known) {
      const request = known.read(bytes)
      if (request !== undefined) return request
    }
    return this.#learn(bytes)
  }

  /** What a head comes to may have changed. */
  forget(): void {
    this.#known.length = 0
  }

  #learn(bytes: Buffer): ExpressRequest | undefined {
    const head = readPlainHead(bytes.toString('latin1', 0, Math.min(bytes.length, LONGEST_PLAIN_HEAD)))
    const route = head === undefined ? undefined : this.#routeOf(head)
    if (head === undefined || route === undefined) return undefined
    if (this.#known.length === KNOWN_HEADS) this.#known.shift()
    const known = new KnownHead(
      head,
      route,
      new AskedInHeaders(head.headers, this.#keyOwner, queryOf(head.url)),
    )
    this.#known.push(known)
    return known.request
  }
}

/** The key of a plain head, without blanks at its ends or within, and what stands before it. */
const KEY = /(^.*\r\nidempotency-key:[ \t]*)([\x21-\x7e]+)(?=\r\n)/is
const PLAIN_KEY = /^[\x21-\x7e]+$/

class KnownHead {
  /** As it came. */
  readonly request: ExpressRequest
  readonly #beforeKey: Buffer
  readonly #keyLength: number
  readonly #afterKey: Buffer

  constructor(
    { method, url, text, bodyBytes }: PlainHead,
    { serve, counts, urgency }: ExpressRoute,
    asked: AskedInHeaders,
  ) {
    this.request = { method, url, bodyBytes, headBytes: text.length, asked, serve, counts, urgency }
    const [, before = text, key = ''] = KEY.exec(text) ?? []
    this.#beforeKey = Buffer.from(before, 'latin1')
    this.#keyLength = key.length
    this.#afterKey = Buffer.from(text.slice(before.length + key.length), 'latin1')
  }

  /** The request, if `bytes` are this head, under whatever key of that length, with its body or without. */
  read(bytes: Buffer): ExpressRequest | undefined {
    const { headBytes, bodyBytes } = this.request
    if (bytes.length !== headBytes + bodyBytes && bytes.length !== headBytes) return undefined
    const keyAt = this.#beforeKey.length
    if (this.#beforeKey.compare(bytes, 0, keyAt) !== 0) return undefined
    if (this.#keyLength === 0) return this.request
    const keyEnd = keyAt + this.#keyLength
    if (this.#afterKey.compare(bytes, keyEnd, headBytes) !== 0) return undefined
    const key = bytes.toString('latin1', keyAt, keyEnd)
    return PLAIN_KEY.test(key) ? { ...this.request, asked: this.request.asked.underKey(key) } : undefined
  }
}
