import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { whenCrowded } from './pipelining.ts'

/** One listener per socket for all its requests: to remove one, an emitter searches all of them. */
export class SharedListeners {
  readonly #event: 'end' | 'close'
  readonly #bySocket = new WeakMap<Socket, Set<() => void>>()

  constructor(event: 'end' | 'close') {
    this.#event = event
  }

  add(socket: Socket, listener: () => void): void {
    const known = this.#bySocket.get(socket)
    if (known !== undefined) {
      known.add(listener)
      return
    }
    const listeners = new Set([listener])
    this.#bySocket.set(socket, listeners)
    socket.once(this.#event, () => {
      for (const listener of listeners) listener()
    })
  }

  remove(socket: Socket, listener: () => void): void {
    this.#bySocket.get(socket)?.delete(listener)
  }
}

const ends = new SharedListeners('end')
const closes = new SharedListeners('close')

/**
 * Keeps half-closed connections open. A client that has closed its side may be gone or, like `nc -N`, may
 * still read the response; TCP does not distinguish the two. So responses are sent, except those with leases,
 * which a client that is gone would hold, and event streams.
 */
export function allowHalfOpen(server: Server): void {
  // Not documented. Without it, Node ends a connection as soon as the client ends its side.
  Object.assign(server, { httpAllowHalfOpen: true })
}

/** Calls `listener` when the client closes its side. The returned function cancels that. */
export function whenHalfClosed(socket: Socket, listener: () => void): () => void {
  if (socket.readableEnded) listener()
  ends.add(socket, listener)
  return () => ends.remove(socket, listener)
}

/** Whether the client must be assumed to be gone. */
export function hasHungUp(socket: Socket): boolean {
  return !socket.writable || socket.readableEnded
}

/**
 * Runs `work` with a signal that aborts when the client disconnects, when a disconnect could not be noticed
 * (see `endWaits`), or when `orWhen` calls its callback.
 */
export function whileWatched<Result>(
  socket: Socket,
  work: (signal: AbortSignal) => Promise<Result>,
  orWhen: (end: () => void) => () => void,
): Promise<Result> {
  const controller = new AbortController()
  const end = () => controller.abort()
  ends.add(socket, end)
  closes.add(socket, end)
  const stopWatchingCrowd = whenCrowded(socket, end)
  const stop = orWhen(end)
  if (socket.destroyed || socket.readableEnded) end()
  return work(controller.signal).finally(() => {
    ends.remove(socket, end)
    closes.remove(socket, end)
    stopWatchingCrowd()
    stop()
  })
}

/**
 * Calls `send` if the client is connected. Calls `lost` if it is certain that no byte of the response was
 * written to the socket; after the first byte, it is unknown what arrived, and `lost` is never called. If
 * `lost` is null, always sends.
 */
export function sendOrLose(
  request: IncomingMessage,
  response: ServerResponse,
  send: () => void,
  lost: (() => void) | null,
): void {
  // A response has no socket until earlier requests on the connection are answered.
  const { socket } = response
  const connection = socket ?? request.socket
  if (lost !== null && hasHungUp(connection)) {
    lost()
    endConnection(connection)
    return
  }
  if (lost !== null && socket === null) {
    // The response is buffered until those before it are written.
    const hungUp = () => endConnection(connection)
    closes.add(connection, lost)
    ends.add(connection, hungUp)
    response.once('socket', () => {
      closes.remove(connection, lost)
      ends.remove(connection, hungUp)
    })
  }
  send()
}

/** Every buffered response of a connection calls this; only the first call has an effect. */
function endConnection(socket: Socket): void {
  if (socket.writable) socket.destroySoon()
}
