import type { IncomingHttpHeaders } from 'node:http'
import { FORWARDED_HEADER } from '../../cluster/forwarded-request.ts'
import type { Urgency } from '../admission/access.ts'
import type { Admission } from '../admission/admission.ts'
import type { RouteCounts } from '../observability/answered-requests.ts'
import type { Serve } from '../requests/exchange.ts'
import { HEAD_END, LONGEST_HEAD_BYTES } from '../requests/paced-reading.ts'
import { type KeyOwner, PullHead, queryOf } from '../requests/preferences.ts'

export interface ParsedHead {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** The original text, including the empty line at the end. */
  readonly text: string
  readonly bodyBytes: number
}

const REQUEST_LINE = /^(GET|POST) (\/[\x21-\x7e]*) HTTP\/1\.1$/
/** As in RFC 9110. Blanks are trimmed separately: a pattern for trailing ones backtracks at every blank. */
const FIELD_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/
const BLANKS = ' \t'

/** Fields that change how a message is parsed, or whether the connection stays open. */
const OUT_OF_THE_ORDINARY = [
  'transfer-encoding',
  'content-encoding',
  'expect',
  'upgrade',
  'te',
  'trailer',
  // Node's parser treats it like Connection.
  'proxy-connection',
]

/**
 * Parses the head at the start of `text` if it is complete and plain: one request line, each field once, no
 * line folding, a JSON body with a Content-Length or no body, and a connection that stays open. Returns
 * undefined for everything else, which is left to Node's parser.
 */
export function parseHead(text: string): ParsedHead | undefined {
  const end = text.indexOf(HEAD_END)
  if (end === -1) return undefined
  const [requestLine = '', ...fieldLines] = text.slice(0, end).split('\r\n')
  const [, method, url = ''] = REQUEST_LINE.exec(requestLine) ?? []
  const headers = readFields(fieldLines)
  if (headers === undefined || headers.host === undefined) return undefined
  if (OUT_OF_THE_ORDINARY.some((name) => headers[name] !== undefined)) return undefined
  if ((headers.connection ?? 'keep-alive').toLowerCase() !== 'keep-alive') return undefined
  const head = { url, headers, text: text.slice(0, end + HEAD_END.length) }
  const length = headers['content-length']
  if (method === 'GET') return length === undefined ? { ...head, method, bodyBytes: 0 } : undefined
  if (method !== 'POST' || length === undefined || !/^[1-9]\d{0,8}$/.test(length)) return undefined
  return headers['content-type'] === 'application/json'
    ? { ...head, method, bodyBytes: Number(length) }
    : undefined
}

function readFields(lines: readonly string[]): IncomingHttpHeaders | undefined {
  const fields: Record<string, string> = Object.create(null)
  for (const line of lines) {
    const [, name, padded] = FIELD_LINE.exec(line) ?? []
    if (name === undefined || padded === undefined) return undefined
    const value = withoutBlanks(padded)
    if (value.includes('\t')) return undefined
    const key = name.toLowerCase()
    if (key in fields) return undefined
    fields[key] = value
  }
  return fields
}

function withoutBlanks(padded: string): string {
  let start = 0
  let end = padded.length
  while (start < end && BLANKS.includes(padded.charAt(start))) start += 1
  while (start < end && BLANKS.includes(padded.charAt(end - 1))) end -= 1
  return padded.slice(start, end)
}

/** One head for pulls, and one for settles of each length: lease ids vary by a few characters. */
const KNOWN_HEADS = 4

export interface FastRoute {
  readonly serve: Serve
  /** Set for a forwarded request: its client is known once the signature is checked. */
  readonly admission?: Admission | undefined
  readonly counts: RouteCounts
  readonly urgency: Urgency
}

/** Undefined: not served here. It may depend on the head only, and not on its idempotency key. */
export type RouteOf = (head: ParsedHead) => FastRoute | undefined

export interface FastRequest extends FastRoute, Pick<ParsedHead, 'method' | 'url' | 'bodyBytes'> {
  readonly head: PullHead
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
    const head = parseHead(bytes.toString('latin1', 0, Math.min(bytes.length, LONGEST_HEAD_BYTES)))
    const route = head === undefined ? undefined : this.#routeOf(head)
    if (head === undefined || route === undefined) return undefined
    // Its signature differs each time, and a connection of another node has the requests of many clients.
    const isForwarded = head.headers[FORWARDED_HEADER] !== undefined
    const known = new CachedHead(head, route, new PullHead(head.headers, this.#keyOwner, queryOf(head.url)))
    if (!isForwarded) {
      if (this.#known.length === KNOWN_HEADS) this.#known.shift()
      this.#known.push(known)
    }
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

  constructor({ method, url, text, bodyBytes }: ParsedHead, route: FastRoute, head: PullHead) {
    this.request = { ...route, method, url, bodyBytes, headBytes: text.length, head }
    const [, before = text, key = ''] = KEY.exec(text) ?? []
    this.#beforeKey = Buffer.from(before, 'latin1')
    this.#keyLength = key.length
    this.#afterKey = Buffer.from(text.slice(before.length + key.length), 'latin1')
  }

  /** The request if `bytes` are this head with any key of the same length, with or without the body. */
  read(bytes: Buffer): FastRequest | undefined {
    const { headBytes, bodyBytes } = this.request
    if (bytes.length !== headBytes + bodyBytes && bytes.length !== headBytes) return undefined
    const keyAt = this.#beforeKey.length
    if (this.#beforeKey.compare(bytes, 0, keyAt) !== 0) return undefined
    if (this.#keyLength === 0) return this.request
    const keyEnd = keyAt + this.#keyLength
    if (this.#afterKey.compare(bytes, keyEnd, headBytes) !== 0) return undefined
    const key = bytes.toString('latin1', keyAt, keyEnd)
    return PLAIN_KEY.test(key) ? { ...this.request, head: this.request.head.underKey(key) } : undefined
  }
}
