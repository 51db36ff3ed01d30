import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { AddressRefused, type AddressRule } from './address-rule.ts'

/** The response of a receiver, or the error. */
export interface Posted {
  readonly isDelivered: boolean
  /** The receiver wants no more events: the subscription is disabled, and this one waits until it is enabled. */
  readonly isGone: boolean
  readonly status: number | null
  readonly error: string | null
  readonly retryAfterMillis: number | null
}

/** The timeout for the whole exchange: name lookup, connection, request and response. */
const POST_MILLIS = 15_000
/** How much of a response body is read and discarded so that the connection can be reused. */
const MOST_ANSWER_BYTES = 65_536
const LONGEST_RETRY_AFTER_SECONDS = 86_400

/** Posts to receivers. Connections are kept alive for a while; redirects are not followed. */
export class Poster {
  readonly #rule: AddressRule
  readonly #millis: number
  readonly #agents: { readonly http: HttpAgent; readonly https: HttpsAgent }

  constructor(rule: AddressRule, millis = POST_MILLIS) {
    this.#rule = rule
    this.#millis = millis
    const options = { keepAlive: true, maxFreeSockets: 8, timeout: 30_000, lookup: rule.lookup }
    this.#agents = { http: new HttpAgent(options), https: new HttpsAgent(options) }
  }

  async post(
    url: string,
    headers: Readonly<Record<string, string>>,
    body: string,
    signal: AbortSignal,
  ): Promise<Posted> {
    const target = new URL(url)
    try {
      if (!this.#rule.allowsHost(target.hostname)) throw new AddressRefused(target.hostname)
      return answerOf(await this.#send(target, headers, body, signal))
    } catch (error) {
      const none = { isDelivered: false, isGone: false, status: null, retryAfterMillis: null }
      return { ...none, error: this.#reasonOf(error) }
    }
  }

  close(): void {
    this.#agents.http.destroy()
    this.#agents.https.destroy()
  }

  #send(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: string,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const isSecure = url.protocol === 'https:'
    const request = (isSecure ? httpsRequest : httpRequest)(url, {
      method: 'POST',
      agent: isSecure ? this.#agents.https : this.#agents.http,
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
      signal: AbortSignal.any([signal, AbortSignal.timeout(this.#millis)]),
    })
    let answered: IncomingMessage | undefined
    // Once the status has arrived, later errors do not matter.
    request.on('error', (error) => (answered === undefined ? reject(error) : resolve(answered)))
    // If the answer is an upgrade (101), Node closes the connection without an error or a response.
    request.on('close', () => {
      if (answered === undefined) reject(new Error('the connection was closed without an answer'))
      else resolve(answered)
    })
    request.on('response', (response) => {
      answered = response
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        // Only the status counts, so a long body is not read to the end.
        if (bytes > MOST_ANSWER_BYTES) request.destroy()
      })
      response.on('error', () => resolve(response))
      response.on('close', () => resolve(response))
    })
    request.end(body)
    return promise
  }

  #reasonOf(error: unknown): string {
    if (!(error instanceof Error)) return String(error)
    if (error.cause instanceof DOMException && error.cause.name === 'TimeoutError')
      return `no answer within ${this.#millis / 1000} seconds`
    const { code } = error as NodeJS.ErrnoException
    const causes = error instanceof AggregateError ? error.errors.map(String).join('; ') : error.message
    return causes === '' ? (code ?? error.name) : causes
  }
}

function answerOf({ statusCode = 0, headers }: IncomingMessage): Posted {
  const isDelivered = statusCode >= 200 && statusCode < 300
  const isRedirect = statusCode >= 300 && statusCode < 400
  const seconds = secondsUntil(headers['retry-after'] ?? '')
  const isRetryAfter = (statusCode === 429 || statusCode === 503) && seconds > 0
  return {
    isDelivered,
    isGone: statusCode === 410,
    status: statusCode,
    error: isDelivered ? null : isRedirect ? 'redirects are not followed' : `answered ${statusCode}`,
    retryAfterMillis: isRetryAfter ? Math.min(seconds, LONGEST_RETRY_AFTER_SECONDS) * 1000 : null,
  }
}

/** `Retry-After` is a number of seconds or a date. */
function secondsUntil(retryAfter: string): number {
  const seconds = Number(retryAfter)
  return Number.isNaN(seconds) ? (Date.parse(retryAfter) - Date.now()) / 1000 : seconds
}
