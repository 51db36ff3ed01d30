import { statusWords } from '../answers/client-errors.ts'
import { type AnswerHeaders, commonHeaders, securityHeaders } from '../answers/headers.ts'
import { type UnwrittenProblem, writtenProblem } from '../answers/problems.ts'

/** What decides whether the connection stays open after a response. */
export interface Staying {
  /** Whether the connection uses TLS. */
  readonly isSecure: boolean
  readonly keepAliveMillis: number
  /** While it drains, each response is the last of its connection. */
  readonly handOff: { readonly isDraining: boolean }
}

/** A complete response, ready to be written to the socket. */
export interface AnswerText {
  readonly text: string
  readonly encoding: 'latin1' | 'utf8'
}

const okHead = (isSecure: boolean) => `HTTP/1.1 200 OK\r\n${fieldLines(commonHeaders(isSecure))}`
const OK_HEAD = okHead(false)
const OK_HEAD_OVER_TLS = okHead(true)

export function answerText(body: string, headers: AnswerHeaders, staying: Staying): AnswerText {
  const bytes = Buffer.byteLength(body)
  return {
    text: `${staying.isSecure ? OK_HEAD_OVER_TLS : OK_HEAD}${fieldLines(headers)}${lastLines(bytes, staying)}${body}`,
    // ASCII has the same bytes in both encodings; Latin-1 is copied without conversion.
    encoding: bytes === body.length ? 'latin1' : 'utf8',
  }
}

export function problemText(refusal: UnwrittenProblem, staying: Staying): AnswerText {
  const { status, headers, body } = writtenProblem(refusal)
  const head = `HTTP/1.1 ${status} ${statusWords[status]}\r\n${fieldLines(Object.entries({ ...securityHeaders(staying.isSecure), ...headers }).flat())}`
  return { text: `${head}${lastLines(body.length, staying)}${body}`, encoding: 'utf8' }
}

function fieldLines(headers: AnswerHeaders): string {
  let lines = ''
  for (let at = 0; at < headers.length; at += 2) lines += `${headers[at]}: ${headers[at + 1]}\r\n`
  return lines
}

function lastLines(contentLength: number, { handOff, keepAliveMillis }: Staying): string {
  const connection = handOff.isDraining
    ? 'close'
    : `keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMillis / 1000)}`
  return `content-length: ${contentLength}\r\nDate: ${dateNow()}\r\nConnection: ${connection}\r\n\r\n`
}

let formatted = { second: Number.NaN, text: '' }

/** The Date header, formatted once per second. */
function dateNow(): string {
  const second = Math.floor(Date.now() / 1000)
  if (formatted.second !== second) formatted = { second, text: new Date(second * 1000).toUTCString() }
  return formatted.text
}
