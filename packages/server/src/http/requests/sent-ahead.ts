import type { Socket } from 'node:net'

/** Ends the wait of one request. */
type EndWait = () => void

const crowded = new WeakSet<Socket>()
const waits = new WeakMap<Socket, Set<EndWait>>()

/**
 * For a connection whose client has sent more ahead than is served at once. It is not read meanwhile, so its hang-up
 * would go unnoticed: requests on it that wait for work are answered now, as if their time was up, and later ones do not
 * wait.
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

/** Calls `end` when nothing on the connection may wait, at once if that is so. The returned function cancels that. */
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
