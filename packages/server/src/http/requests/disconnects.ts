import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { whenCrowded } from './pipelining.ts'

/** Adds one listener per socket for all its requests: to remove one, an emitter searches all of them. */
function listenerTo(event: 'end' | 'close') {
  const bySocket = new WeakMap<Socket, Set<() => void>>()
  /** The returned function cancels that. */
  return (socket: Socket, listener: () => void): (() => void) => {
    const listeners = bySocket.get(socket) ?? new Set()
    if (!bySocket.has(socket)) {
      bySocket.set(socket, listeners)
      socket.once(event, () => {
        for (const one of listeners) one()
      })
    }
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
}

/** Calls the listener when the client closes its side from now on. */
const whenEnded = listenerTo('end')
export const whenClosed = listenerTo('close')

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
  return whenEnded(socket, listener)
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
  const stops = [whenEnded(socket, end), whenClosed(socket, end), whenCrowded(socket, end), orWhen(end)]
  if (socket.destroyed || socket.readableEnded) end()
  return work(controller.signal).finally(() => {
    for (const stop of stops) stop()
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
    const stops = [whenClosed(connection, lost), whenEnded(connection, () => endConnection(connection))]
    response.once('socket', () => {
      for (const stop of stops) stop()
    })
  }
  send()
}

/** Every buffered response of a connection calls this; only the first call has an effect. */
function endConnection(socket: Socket): void {
  if (socket.writable) socket.destroySoon()
}
