import type { IncomingMessage } from 'node:http'
import { type Received, type ReceivedHeaders, type Send, send as sendByFetch } from '../send.ts'

/** Sends requests with `node:http` instead of Node's fetch, which needs several times the CPU per request. */
export const send: Send = (url, request) =>
  new Promise((resolve, reject) => {
    const { method, headers, body, signal } = request
    const sending = clientFor(url).request(url, {
      method,
      headers: { ...headers, ...lengthOf(body) },
      signal,
    })
    sending.on('error', (error) => reject(failed(error)))
    sending.once('response', (response) => {
      if (!isRedirection(response)) return resolve(new ReceivedMessage(response))
      // Let fetch handle redirects: it implements the rules for targets and headers.
      response.on('error', () => {}).resume()
      resolve(sendByFetch(url, request))
    })
    sending.end(body)
  })

/** Loaded with the first request: a command that only prints its help never needs it. */
function clientFor(url: string) {
  return process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http')
}

class ReceivedMessage implements Received {
  readonly #message: IncomingMessage
  readonly headers: ReceivedHeaders

  constructor(message: IncomingMessage) {
    this.#message = message
    this.headers = { get: (name) => message.headers[name]?.toString() ?? null }
  }

  get status(): number {
    return this.#message.statusCode ?? 0
  }

  get ok(): boolean {
    return this.status >= 200 && this.status < 300
  }

  text(): Promise<string> {
    return new Promise((resolve, reject) => {
      let text = ''
      this.#message.setEncoding('utf8')
      this.#message.on('data', (part: string) => {
        text += part
      })
      this.#message.once('end', () => resolve(text))
      this.#message.on('error', (error) => reject(failed(error)))
    })
  }
}

function lengthOf(body: string | undefined): Record<string, number> {
  return body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
}

const redirections = new Set([301, 302, 303, 307, 308])

function isRedirection(message: IncomingMessage): boolean {
  return redirections.has(message.statusCode ?? 0) && message.headers.location !== undefined
}

function failed(cause: Error): TypeError {
  return new TypeError('the request failed', { cause })
}

/** OpenSSL's error codes for an answer that is not TLS. */
const notTls = new Set(['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'])

/** No process listened on the port, or the host could not be resolved or reached. */
const unconnected = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

export function unsendableText(base: string, error: unknown): string | undefined {
  if (causeOf(error).message === 'bad port') return `${base} has a port that fetch blocks`
  if (!notTls.has(causeOf(error).code ?? '')) return undefined
  const plain = base.replace(/^https:/, 'http:')
  return `${base} does not use TLS: the service expects plain HTTP on this port; use ${plain}, or the port of the TLS proxy`
}

export function isUnconnected(error: unknown): boolean {
  return unconnected.has(causeOf(error).code ?? '')
}

function causeOf(error: unknown): { readonly code?: string; readonly message?: string } {
  return (error as { cause?: { code?: string; message?: string } } | null)?.cause ?? {}
}
