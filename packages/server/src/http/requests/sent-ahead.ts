import type { Socket } from 'node:net'

/** Ends the wait of one request. */
type EndWait = () => void

const crowded = new WeakSet<Socket>()
const waits = new WeakMap<Socket, Set<EndWait>>()

/**
 * Ends all waits on a connection whose client has pipelined more requests than are served at once. The
 * connection is not read meanwhile, so a disconnect would not be noticed. Requests that wait for work are
 * answered now, as if their wait had expired, and later ones do not wait.
 */
export function endWaits(socket: Socket): void {
  if (crowded.has(socket)) return
  crowded.add(socket)
  const ends = waits.get(socket) ?? []
  waits.delete(socket)
  for (const end of ends) end()
}

export function allowWaits(socket: Socket): void {
  crowded.delete(socket)
}

/**
 * Calls `end` when requests on the connection must not wait any more, or immediately if that is already so.
 * The returned function cancels that.
 */
export function whenCrowded(socket: Socket, end: EndWait): () => void {
  if (crowded.has(socket)) {
    end()
    return () => undefined
  }
  const ends = waits.get(socket) ?? new Set()
  waits.set(socket, ends)
  ends.add(end)
  return () => ends.delete(end)
}
