import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Tells a pull that waits when there is nobody left to wait for. */
export class ClientWatch {
  readonly #socket: Socket
  readonly #controller = new AbortController()
  readonly #onClose = () => this.#controller.abort()

  constructor(socket: Socket) {
    this.#socket = socket
    listenWithoutLimit(socket, this.#onClose)
    if (socket.destroyed) this.#controller.abort()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  stop(): void {
    this.#socket.off('close', this.#onClose)
  }
}

/**
 * Calls `send` while the client is there to be answered, and `lost` when it is certain that not one byte of the
 * answer was given to the socket. Once a byte was, nobody can know what arrived, and `lost` is never called.
 */
export function sendOrLose(
  request: IncomingMessage,
  response: ServerResponse,
  send: () => void,
  lost: () => void,
): void {
  // Until an earlier request on the same connection is answered, a response has no socket of its own.
  const { socket } = response
  const connection = socket ?? request.socket
  if (!connection.writable) {
    lost()
    return
  }
  if (socket === null) {
    // The answer waits in memory for its turn.
    listenWithoutLimit(connection, lost)
    response.once('socket', () => connection.off('close', lost))
  }
  send()
}

/** Requests that a client sent ahead on one connection each listen, and there may be many. */
function listenWithoutLimit(socket: Socket, onClose: () => void): void {
  socket.setMaxListeners(0)
  socket.once('close', onClose)
}
