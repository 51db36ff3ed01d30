import type { Socket } from 'node:net'
import { PROBLEM_MEDIA_TYPE, type ProblemCode, problem } from '@baton/protocol'
import { statusWords } from './status-words.ts'

interface ClientError extends Error {
  readonly code?: string
}

/** Bytes that never became a request: there is no reply to answer with, so the answer is written by hand. */
export function answerClientError(error: ClientError, socket: Socket): void {
  // Nobody is left to read an answer.
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  // In the middle of an earlier answer, anything written here would become part of it.
  if (isAnswering(socket)) {
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
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroySoon())
}

function isAnswering(socket: Socket): boolean {
  const answer = (socket as { _httpMessage?: { headersSent?: boolean } | null })._httpMessage
  return answer?.headersSent === true
}

export const ARRIVED_TOO_LATE = 'headers and body did not arrive in time'
export const HEADERS_TOO_LARGE = 'the request line and headers are larger than the service accepts'

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
