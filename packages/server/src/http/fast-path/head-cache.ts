import type { Urgency } from '../admission/access.ts'
import type { RouteCounts } from '../observability/answered-requests.ts'
import type { Serve } from '../requests/exchange.ts'
import type { KeyOwner } from '../requests/preferences.ts'
import { queryOf, RequestPreferences } from '../requests/preferences.ts'
import { MAX_HEAD_LENGTH, type ParsedHead, parseHead } from './head-parser.ts'

/**
 * A client sends one head for its pulls, and one for settles of each length; lease ids vary in length by a
 * few characters.
 */
const KNOWN_HEADS = 4

export interface FastRoute {
  readonly serve: Serve
  readonly counts: RouteCounts
  readonly urgency: Urgency
}

/**
 * Undefined: the fast path does not serve the request. The result may only depend on the head, and not on its
 * idempotency key.
 */
export type RouteOf = (head: ParsedHead) => FastRoute | undefined

/** A request as described by its head. */
export interface FastRequest extends FastRoute, Pick<ParsedHead, 'method' | 'url' | 'bodyBytes'> {
  readonly asked: RequestPreferences
  readonly headBytes: number
}

/**
 * Caches the last request heads of a connection with their parsed form. Workers send the same head
 * repeatedly; only the idempotency key of a pull differs each time. So the bytes before and after the key are
 * compared, and the head is not parsed again (bench scenario one-by-one).
 */
export class HeadCache {
  readonly #routeOf: RouteOf
  readonly #keyOwner: KeyOwner
  readonly #known: CachedHead[] = []

  constructor(routeOf: RouteOf, keyOwner: KeyOwner) {
    this.#routeOf = routeOf
    this.#keyOwner = keyOwner
  }

  /** Returns the request at the start of `bytes`; undefined when it is not plain or has no route here. */
  read(bytes: Buffer): FastRequest | undefined {
    for (const known of this.#known) {
      const request = known.read(bytes)
      if (request !== undefined) return request
    }
    return this.#learn(bytes)
  }

  /** Clears the cache: after a change of tokens, the same head may be refused. */
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

/** Matches the idempotency key of a plain head, which has no blanks, and everything before it. */
const KEY = /(^.*\r\nidempotency-key:[ \t]*)([\x21-\x7e]+)(?=\r\n)/is
const PLAIN_KEY = /^[\x21-\x7e]+$/

class CachedHead {
  /** The request from which the head was cached, with its own key. */
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

  /**
   * Returns the request if `bytes` are this head with any key of the same length, with or without the body.
   */
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
