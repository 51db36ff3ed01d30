import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { securityHeaders } from '../answers/security-headers.ts'
import { JSON_TYPE, type Service } from '../service.ts'
import { sendOrLose } from './hang-up.ts'
import { RequestPreferences } from './request-headers.ts'

/** A request for the hand-off and the way back to whoever made it, whichever of the two ways it came. */
export interface Exchange {
  readonly asked: RequestPreferences
  readonly socket: Socket
  /**
   * Calls `lost` instead of sending when the client has hung up and not one byte of the answer was given to the socket.
   * Null: there is nothing to lose, and whoever still reads is answered.
   */
  answer(body: string, headers: AnswerHeaders, lost: (() => void) | null): void
}

/** Names and values in turn, beside those that every answer of the hand-off has. */
export type AnswerHeaders = readonly string[]

/** Serves a request to its end, or throws before anything of the answer was sent. `body` is parsed JSON. */
export type Serve = (exchange: Exchange, body: unknown) => Promise<Served>

export interface Served {
  /** For work, because the client asked to: the time that it took is not the node's. */
  readonly waited: boolean
}

/** What every answer of the hand-off says about itself. */
const leaseState = (isSecure: boolean): AnswerHeaders => [
  ...['content-type', JSON_TYPE, 'cache-control', 'no-store'],
  ...Object.entries(securityHeaders(isSecure)).flat(),
]
const inClear = leaseState(false)
const overTls = leaseState(true)

export const commonHeaders = (isSecure: boolean): AnswerHeaders => (isSecure ? overTls : inClear)

/** The way through Node's HTTP server. Fastify's reply has nothing to add to these answers. */
export function exchangeOver(
  request: IncomingMessage,
  response: ServerResponse,
  { handOff, keyOwner, isSecure }: Pick<Service, 'handOff' | 'keyOwner' | 'isSecure'>,
): Exchange {
  const { headers, socket, url = '' } = request
  const send = (body: string, more: AnswerHeaders) => {
    const closing = handOff.isDraining ? ['connection', 'close'] : []
    const length = ['content-length', String(Buffer.byteLength(body))]
    response.writeHead(200, [...commonHeaders(isSecure), ...more, ...closing, ...length]).end(body)
  }
  return {
    asked: new RequestPreferences(headers, keyOwner, queryOf(url)),
    socket,
    answer: (body, more, lost) => sendOrLose(request, response, () => send(body, more), lost),
  }
}

/** What stands behind the question mark. */
export function queryOf(url: string): string {
  const at = url.indexOf('?')
  return at === -1 ? '' : url.slice(at + 1)
}
