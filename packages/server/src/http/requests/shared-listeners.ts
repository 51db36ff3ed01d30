import type { Socket } from 'node:net'

/**
 * Listeners for one event of connections, all behind a single one on each socket. An emitter looks through its
 * listeners to remove one: with a listener for each of 10,000 requests that were sent ahead, a hang-up took seconds.
 */
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
      for (const tell of listeners) tell()
    })
  }

  remove(socket: Socket, listener: () => void): void {
    this.#bySocket.get(socket)?.delete(listener)
  }
}
