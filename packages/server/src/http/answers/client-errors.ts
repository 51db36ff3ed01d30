import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { securityHeaders } from './headers.ts'
import { type Problem, writtenProblem } from './problems.ts'

/** By status. An import would load all of node:http, which slows down every start (bench cold-start). */
export const { STATUS_CODES: statusWords } = process.getBuiltinModule('node:http')

interface ClientError extends Error {
  readonly code?: string
}

/** Connections with invalid bytes after a request: further errors are ignored until that is answered. */
const faulty = new WeakSet<Socket>()

/** Answers bytes that are no request. There is no reply object, so it is written to the socket. */
export function answerClientError(error: ClientError, socket: Socket): void {
  if (error.code !== 'ECONNRESET' && faulty.has(socket)) return
  // The client cannot read an answer.
  if (error.code === 'ECONNRESET' || isHandshakeFault(error) || !socket.writable) {
    socket.destroy()
    return
  }
  const earlier = answerUnderWay(socket)
  // The client sent invalid bytes after a valid request: answer that request first.
  if (earlier !== undefined && isBoundToEnd(earlier)) {
    faulty.add(socket)
    earlier.once('finish', () => {
      faulty.delete(socket)
      answerClientError(error, socket)
    })
    return
  }
  // Anything written here would become part of the response in progress.
  if (earlier?.headersSent === true) {
    socket.destroy(error)
    return
  }
  socket.end(lastAnswer(faultOf(error)), () => socket.destroySoon())
}

/** A problem as the last response of a connection, in the form in which it is written to the socket. */
export function lastAnswer(fault: Problem): string {
  const { status, headers, body } = writtenProblem(fault)
  const fields = { ...securityHeaders(false), ...headers, 'content-length': body.length, connection: 'close' }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${statusWords[status]}\r\n${lines.join('')}\r\n${body}`
}

/** Without a completed TLS handshake, no response can be sent. Plain HTTP is answered in tls.ts. */
const isHandshakeFault = ({ code = '' }: ClientError) => /^ERR_(?:SSL|TLS)_/.test(code)

type Answer = ServerResponse<IncomingMessage>

/** The response to the first unanswered request on the connection. */
function answerUnderWay(socket: Socket): Answer | undefined {
  return (socket as { _httpMessage?: Answer | null })._httpMessage ?? undefined
}

/** Whether the response will end: its request is complete, and it is not an open stream. */
function isBoundToEnd({ req, headersSent, writableEnded }: Answer): boolean {
  return req.complete && (!headersSent || writableEnded)
}

export const isTooLate = ({ code }: ClientError): boolean => code === 'ERR_HTTP_REQUEST_TIMEOUT'

function faultOf(error: ClientError): Problem {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { code: 'request_timeout', detail: 'headers and body did not arrive in time' }
    case 'HPE_HEADER_OVERFLOW':
      return {
        code: 'headers_too_large',
        detail: 'the request line and the headers exceed the limit of the service',
      }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return {
        code: 'body_too_large',
        detail: 'the chunk extensions exceed the limit of the service',
      }
    default:
      return { code: 'bad_request', detail: 'this is not a valid HTTP/1.1 request' }
  }
}
