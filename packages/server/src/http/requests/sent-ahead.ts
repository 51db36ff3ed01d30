import type { Socket } from 'node:net'

/** Ends the wait of one request. */
type EndWait = () => void

const notRead = new WeakSet<Socket>()
const waits = new WeakMap<Socket, Set<EndWait>>()

/**
 * Pauses a connection whose client has sent more ahead than is served at once. While a connection is not read its
 * hang-up goes unnoticed, so nothing on it may wait: requests that wait for work are answered now, as if their time was up.
 */
export function stopReading(socket: Socket): void {
  socket.pause()
  if (notRead.has(socket)) return
  notRead.add(socket)
  const ends = waits.get(socket) ?? []
  waits.delete(socket)
  for (const end of ends) end()
}

/** Reads the connection again, and lets later requests wait. */
export function readOn(socket: Socket): void {
  notRead.delete(socket)
  socket.resume()
}

/** Calls `end` when the connection is no longer read, or now if that is so. The returned function cancels that. */
export function whenNotRead(socket: Socket, end: EndWait): () => void {
  if (notRead.has(socket)) {
    end()
    return () => undefined
  }
  const ends = waits.get(socket) ?? new Set()
  waits.set(socket, ends)
  ends.add(end)
  return () => ends.delete(end)
}
