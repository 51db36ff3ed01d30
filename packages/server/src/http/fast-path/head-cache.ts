import type { Urgency } from '../budget/overload.ts'
import type { KeyOwner } from '../requests/callers.ts'
import { queryOf, type Serve } from '../requests/exchange.ts'
import type { RouteCounts } from '../requests/request-counts.ts'
import { RequestPreferences } from '../requests/request-headers.ts'
import { MAX_HEAD_LENGTH, type ParsedHead, parseHead } from './head-parser.ts'

/** A client has one head for its pulls, and one for its settles of each length; lease ids differ by a character or two. */
const KNOWN_HEADS = 4

export interface FastRoute {
  readonly serve: Serve
  readonly counts: RouteCounts
  readonly urgency: Urgency
}

/** Undefined: the fast path does not serve it. Depends on nothing but the head, and not on its key. */
export type RouteOf = (head: ParsedHead) => FastRoute | undefined

/** A request as its head has it. */
export interface FastRequest extends FastRoute, Pick<ParsedHead, 'method' | 'url' | 'bodyBytes'> {
  readonly asked: RequestPreferences
  readonly headBytes: number
}

/**
 * What the last requests of a connection began with, and what that came to. Workers send the same head again and again;
 * only the key of a pull is another each time. So heads are compared as the bytes around the key, and not read anew:
 * reading took a sixth of the time of a pull with a key and a settle.
 */
export class HeadCache {
  readonly #routeOf: RouteOf
  readonly #keyOwner: KeyOwner
  readonly #known: CachedHead[] = []

  constructor(routeOf: RouteOf, keyOwner: KeyOwner) {
    this.#routeOf = routeOf
    this.#keyOwner = keyOwner
  }

  /** The request at the beginning of `bytes`. Undefined when it is not a plain one, or has no route here. */
  read(bytes: Buffer): FastRequest | undefined {
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

  #learn(bytes: Buffer): FastRequest | undefined {
    const head = parseHead(bytes.toString('latin1', 0, Math.min(bytes.length, MAX_HEAD_LENGTH)))
    const route = head === undefined ? undefined : this.#routeOf(head)
    if (head === undefined || route === undefined) return undefined
    if (this.#known.length === KNOWN_HEADS) this.#known.shift()
    const known = new CachedHead(
      head,
      route,
      new RequestPreferences(head.headers, this.#keyOwner, queryOf(head.url)),
    )
    this.#known.push(known)
    return known.request
  }
}

/** The key of a plain head, without blanks at its ends or within, and what stands before it. */
const KEY = /(^.*\r\nidempotency-key:[ \t]*)([\x21-\x7e]+)(?=\r\n)/is
const PLAIN_KEY = /^[\x21-\x7e]+$/

class CachedHead {
  /** As it came. */
  readonly request: FastRequest
  readonly #beforeKey: Buffer
  readonly #keyLength: number
  readonly #afterKey: Buffer

  constructor(
    { method, url, text, bodyBytes }: ParsedHead,
    { serve, counts, urgency }: FastRoute,
    asked: RequestPreferences,
  ) {
    this.request = { method, url, bodyBytes, headBytes: text.length, asked, serve, counts, urgency }
    const [, before = text, key = ''] = KEY.exec(text) ?? []
    this.#beforeKey = Buffer.from(before, 'latin1')
    this.#keyLength = key.length
    this.#afterKey = Buffer.from(text.slice(before.length + key.length), 'latin1')
  }

  /** The request, if `bytes` are this head, under whatever key of that length, with its body or without. */
  read(bytes: Buffer): FastRequest | undefined {
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
