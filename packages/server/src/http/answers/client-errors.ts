import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { PROBLEM_MEDIA_TYPE, type ProblemCode, problem } from '@baton/protocol'
import { securityHeaders } from './security-headers.ts'

/**
 * Node's words for each status. Not by an import: for that Node reads everything that node:http has, a client for
 * WebSockets among it, which takes 0.07 s of a processor at every start.
 */
export const { STATUS_CODES: statusWords } = process.getBuiltinModule('node:http')

interface ClientError extends Error {
  readonly code?: string
}

/** Connections on which requests before the fault are still to be answered; what else arrives there is not looked at. */
const faulty = new WeakSet<Socket>()

/** Bytes that never became a request: there is no reply to answer with, so the answer is written by hand. */
export function answerClientError(error: ClientError, socket: Socket): void {
  if (error.code !== 'ECONNRESET' && faulty.has(socket)) return
  // Nobody is left to read an answer.
  if (error.code === 'ECONNRESET' || isHandshakeFault(error) || !socket.writable) {
    socket.destroy()
    return
  }
  const earlier = answerUnderWay(socket)
  // Those who sent something else after a request are answered what that request came to, and then this.
  if (earlier !== undefined && isBoundToEnd(earlier)) {
    faulty.add(socket)
    earlier.once('finish', () => {
      faulty.delete(socket)
      answerClientError(error, socket)
    })
    return
  }
  // In the middle of an earlier answer, anything written here would become part of it.
  if (earlier?.headersSent === true) {
    socket.destroy(error)
    return
  }
  const { code, detail } = faultOf(error)
  const document = problem(code, detail)
  const body = JSON.stringify(document)
  const head = [
    `HTTP/1.1 ${document.status} ${statusWords[document.status]}`,
    `Content-Type: ${PROBLEM_MEDIA_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    ...Object.entries(securityHeaders(false)).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroySoon())
}

/** Without a handshake there is no way to answer. */
const isHandshakeFault = ({ code = '' }: ClientError) => /^ERR_(?:SSL|TLS)_/.test(code)

type Answer = ServerResponse<IncomingMessage>

/** Of the first request on the connection that is not answered yet. */
function answerUnderWay(socket: Socket): Answer | undefined {
  return (socket as { _httpMessage?: Answer | null })._httpMessage ?? undefined
}

/** Its request is here as a whole, and it is no stream that has begun: that may go on for good. */
function isBoundToEnd({ req, headersSent, writableEnded }: Answer): boolean {
  return req.complete && (!headersSent || writableEnded)
}

export const ARRIVED_TOO_LATE = 'headers and body did not arrive in time'
export const HEADERS_TOO_LARGE = 'the request line and headers are larger than the service accepts'

export const isTooLate = ({ code }: ClientError): boolean => code === 'ERR_HTTP_REQUEST_TIMEOUT'

function faultOf(error: ClientError): { code: ProblemCode; detail: string } {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { code: 'request_timeout', detail: ARRIVED_TOO_LATE }
    case 'HPE_HEADER_OVERFLOW':
      return { code: 'headers_too_large', detail: HEADERS_TOO_LARGE }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return {
        code: 'body_too_large',
        detail: 'the extensions of a chunk are larger than the service accepts',
      }
    default:
      return { code: 'bad_request', detail: 'what was sent is not a request of HTTP/1.1' }
  }
}
