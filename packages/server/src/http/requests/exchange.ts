import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type AnswerHeaders, commonHeaders } from '../answers/headers.ts'
import { sendOrLose } from './disconnects.ts'
import { type KeyOwner, PullHead, queryOf } from './preferences.ts'

/** A pull or settle request and its response, on the fast path or by Fastify. */
export interface Exchange {
  readonly head: PullHead
  readonly socket: Socket
  /** Calls `lost` instead if no byte reached the socket of a client that is gone. Null: always sends. */
  answer(body: string, headers: AnswerHeaders, lost: (() => void) | null): void
}

/** Serves a request, or throws before any part of the response is sent. `body` is parsed JSON. */
export type Serve = (exchange: Exchange, body: unknown) => Promise<Served>

interface Served {
  /** Whether the request waited for work. Then its duration does not reflect the speed of the node. */
  readonly waited: boolean
}

interface ExchangeParts {
  readonly handOff: { readonly isDraining: boolean }
  readonly keyOwner: KeyOwner
  readonly isSecure: boolean
}

/** Over Node's HTTP server. It bypasses Fastify's reply, which these responses do not need. */
export function exchangeOver(
  request: IncomingMessage,
  response: ServerResponse,
  { handOff, keyOwner, isSecure }: ExchangeParts,
): Exchange {
  const { headers, socket, url = '' } = request
  const send = (body: string, more: AnswerHeaders) => {
    const closing = handOff.isDraining ? ['connection', 'close'] : []
    const length = ['content-length', String(Buffer.byteLength(body))]
    response.writeHead(200, [...commonHeaders(isSecure), ...more, ...closing, ...length]).end(body)
  }
  return {
    head: new PullHead(headers, keyOwner, queryOf(url)),
    socket,
    answer: (body, more, lost) => sendOrLose(request, response, () => send(body, more), lost),
  }
}
