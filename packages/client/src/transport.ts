import type { Problem } from '@baton/protocol'
import { checkInstanceId } from '@baton/protocol/core'
import { send, unsendableText } from '#send'
import { BaseUrls } from './base-urls.ts'
import type { BatonClientOptions, RequestReport } from './client-options.ts'
import { problemError, UnexpectedAnswerError, UnreachableError, UnsendableError } from './errors.ts'
import { guarded } from './guarded.ts'
import { timer } from './retry.ts'
import type { Received, ReceivedHeaders, Send, SentRequest } from './send.ts'

/**
 * The JSON of a value. A value without a JSON form, a BigInt or a circular object, is rejected with an
 * `UnsendableError`, like other failures of a call.
 */
export function jsonText(value: unknown, what: string): string {
  try {
    // Undefined and functions have no JSON. They are sent as null, which the contract check reports.
    return JSON.stringify(value) ?? 'null'
  } catch (error) {
    throw new UnsendableError(`${what} cannot be written as JSON: ${(error as Error).message.split('\n')[0]}`)
  }
}

/** Field names and values as in RFC 9110, one byte per character. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * Validates headers here, because platforms reject an invalid header with the same error as an outage. The
 * message omits the value, which may be a token. If names differ only by case, the last one wins.
 */
function sentHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const sent: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (!NAME.test(name) || !VALUE.test(value)) {
      throw new UnsendableError(`the header ${name} has a name or a value that HTTP cannot carry`)
    }
    sent[name.toLowerCase()] = String(value)
  }
  return sent
}

/** Headers carry bytes, one per character. The service reads these bytes as UTF-8. */
function headerText(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('')
}

/**
 * The signal of one request: aborted by the caller's signal or by the timeout. Not AbortSignal.any, which
 * keeps a reference in a long-lived signal for each request that was ever made under it.
 */
export function requestSignal(outer: AbortSignal | undefined, timeoutMillis: number) {
  const controller = new AbortController()
  let timedOut = false
  const running = timer(() => {
    timedOut = true
    controller.abort()
  }, timeoutMillis)
  const follow = () => controller.abort(outer?.reason)
  if (outer?.aborted) follow()
  else outer?.addEventListener('abort', follow, { once: true })
  return {
    signal: controller.signal as AbortSignal,
    timedOut: () => timedOut,
    /** Must be called when the request has ended. */
    release: () => {
      clearTimeout(running)
      outer?.removeEventListener('abort', follow)
    },
  }
}

const DEFAULT_TIMEOUT_SECONDS = 30
const SHOWN_BODY_CHARACTERS = 200

export interface RequestSpec {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Relative to the base URL, beginning with a slash. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | readonly string[] | undefined>> | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body?: string
  /** How long the service may wait before it answers. */
  readonly waitSeconds?: number | undefined
  /** In addition to that wait. */
  readonly timeoutMillis?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** A request whose answer is a JSON object. */
export interface JsonRequestSpec extends RequestSpec {
  /** A field of every answer. Without it, the answer is from another program. */
  readonly field: string
}

export interface Answer {
  readonly body: unknown
  readonly headers: ReceivedHeaders
}

/** Sends one request and returns its answer, or throws a typed error. Does not retry. */
export class Transport {
  readonly #bases: BaseUrls
  readonly #options: BatonClientOptions
  readonly #send: Send
  readonly #fetch: typeof globalThis.fetch
  readonly #timeoutMillis: number
  readonly #onRequest: (request: RequestReport) => void

  constructor(options: BatonClientOptions) {
    this.#bases = new BaseUrls(options.url)
    const named = options.instanceId === undefined ? undefined : checkInstanceId(options.instanceId)
    if (named?.ok === false) throw new TypeError(`instanceId ${named.detail}`)
    this.#options = options
    this.#send = options.fetch ?? send
    // Bound, because browsers throw if fetch is called without its global object.
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis)
    this.#onRequest = guarded(options.onRequest)
    this.#timeoutMillis = (options.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS) * 1000
  }

  async json(spec: JsonRequestSpec): Promise<Answer> {
    return this.#reported(spec, this.#send, async (response) => {
      const text = await response.text()
      return { body: parsed(text, response.status, spec.field), headers: response.headers }
    })
  }

  /** Returns the body as a stream. The timeout covers the time until the body begins. */
  async stream(spec: RequestSpec): Promise<ReadableStream<Uint8Array>> {
    return this.#reported(spec, this.#fetch, async (response) => response.body ?? new ReadableStream())
  }

  async #reported<R extends Received, T>(
    spec: RequestSpec,
    send: (url: string, request: SentRequest) => Promise<R>,
    read: (response: R) => Promise<T>,
  ): Promise<T> {
    const begun = performance.now()
    let status: number | undefined
    const report = (error?: unknown) => {
      const millis = performance.now() - begun
      this.#onRequest({ method: spec.method, path: spec.path, status, millis, error })
    }
    try {
      const result = await this.#bases.ask((base) =>
        this.#exchange(base, spec, send, async (response) => {
          status = response.status
          this.#bases.heard(base, response.headers.get('baton-leader'))
          if (!response.ok) throw await refusal(response)
          return read(response)
        }),
      )
      report()
      return result
    } catch (error) {
      report(error)
      throw error
    }
  }

  async #exchange<R extends Received, T>(
    base: string,
    spec: RequestSpec,
    send: (url: string, request: SentRequest) => Promise<R>,
    read: (response: R) => Promise<T>,
  ): Promise<T> {
    const timeoutMillis = (spec.timeoutMillis ?? this.#timeoutMillis) + (spec.waitSeconds ?? 0) * 1000
    const url = urlOf(base, spec)
    const headers = sentHeaders(await this.#headers(spec))
    const { signal, timedOut, release } = requestSignal(spec.signal, timeoutMillis)
    try {
      const { method, body } = spec
      const sent = { method, headers, signal, cache: 'no-store' as const }
      const response = await send(url, body === undefined ? sent : { ...sent, body })
      return await read(response)
    } catch (error) {
      if (spec.signal?.aborted) throw spec.signal.reason
      if (timedOut()) {
        throw new UnreachableError(`${base} did not answer within ${timeoutMillis / 1000} s`)
      }
      const unsendable = unsendableText(base, error)
      if (unsendable !== undefined) throw new UnsendableError(unsendable)
      if (error instanceof TypeError || isAbort(error)) {
        throw new UnreachableError(`${base} cannot be reached${why(error)}`, { cause: error })
      }
      throw error
    } finally {
      release()
    }
  }

  async #headers(spec: RequestSpec): Promise<Record<string, string>> {
    const { token, instanceId, headers } = this.#options
    const bearer = typeof token === 'function' ? await token() : token
    return {
      accept: 'application/json',
      ...(typeof headers === 'function' ? headers() : headers),
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      ...(instanceId === undefined ? {} : { 'x-instance-id': headerText(instanceId) }),
      ...(spec.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...spec.headers,
    }
  }
}

function urlOf(base: string, { path, query = {} }: RequestSpec): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const one of value) parameters.append(name, String(one))
    else if (value !== undefined) parameters.set(name, String(value))
  }
  const suffix = parameters.size === 0 ? '' : `?${parameters}`
  return `${base}${path}${suffix}`
}

/** The object in an answer. Every object of this kind has the field. */
export function parsed(text: string, status: number, field: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // A proxy that sends no length can cut an answer without an error of the connection.
    if (text.startsWith('{')) throw new UnreachableError(`the answer is incomplete: ${beginningOf(text)}`)
    throw new UnexpectedAnswerError(`the answer is not JSON but ${beginningOf(text)}`, status)
  }
  if (typeof value === 'object' && value !== null && Object.hasOwn(value, field)) return value
  throw new UnexpectedAnswerError(`the answer has no ${field}: ${beginningOf(text)}`, status)
}

/**
 * No token, wrong method. A redirect to another origin drops the token, and 301 and 302 turn a POST into a
 * GET, so the problem that the service reports would mislead.
 */
const lostByRedirect = new Set([401, 405])

async function refusal(response: Received): Promise<Error> {
  const { status, redirected, url = '' } = response
  const text = await response.text()
  if (redirected === true && lostByRedirect.has(status)) {
    const { origin, pathname } = new URL(url)
    const what = `status ${status} after a redirect to ${origin}${pathname}`
    return new UnexpectedAnswerError(`${what}, which drops the token, and the body of some requests`, status)
  }
  const retryAfter = retryAfterOf(response.headers)
  try {
    const document = JSON.parse(text) as Partial<Problem>
    if (typeof document.code === 'string' && typeof document.detail === 'string') {
      return problemError(document as Problem, retryAfter)
    }
  } catch {
    // Not JSON from Baton; reported below.
  }
  return new UnexpectedAnswerError(`status ${status} with ${beginningOf(text)}`, status, retryAfter)
}

export function retryAfterOf(headers: ReceivedHeaders): number | undefined {
  const text = headers.get('retry-after')
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) : undefined
}

/** On one line and without control characters, because it becomes part of messages in logs and terminals. */
function beginningOf(text: string): string {
  const line = text.replace(/[\s\p{C}]+/gu, ' ').trim()
  if (line === '') return 'an empty body'
  return line.length > SHOWN_BODY_CHARACTERS ? `${line.slice(0, SHOWN_BODY_CHARACTERS)}…` : line
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}

/** Node puts the reason into the cause. On other platforms it is in the message. */
function why(error: unknown): string {
  const { cause } = error as { cause?: { code?: string; message?: string } }
  const text = cause?.code ?? cause?.message ?? (error as Error).message
  return text ? `: ${text}` : ''
}
