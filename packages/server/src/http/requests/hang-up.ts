import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { whenCrowded } from './sent-ahead.ts'

/** Longer than the loop of a node under load ever takes for a turn. */
const STOOD_STILL_MILLIS = 100
/** How long it takes at most to read what has gathered meanwhile. */
const CATCHING_UP_MILLIS = 1000

/**
 * Whoever asked while the node was stopped, slept or waited for its disk may have hung up since. What they sent and the end
 * of their connection are read in two turns of the loop, and a pull may be answered within the first. So a node that
 * stood still lets the loop turn once more before it answers, for a while, and nothing is handed to the dead unnoticed.
 * A lone request after a quiet time waits for that turn as well, and a node whose requests follow each other never does.
 */
export class StallTimer {
  #lastAskedAt = Number.NEGATIVE_INFINITY
  #caughtUpAt = 0

  /** At the beginning of a request. Undefined: there is nothing to wait for before it is answered. */
  noteRequest(): (() => Promise<void>) | undefined {
    const now = performance.now()
    if (now - this.#lastAskedAt > STOOD_STILL_MILLIS) this.#caughtUpAt = now + CATCHING_UP_MILLIS
    this.#lastAskedAt = now
    return now < this.#caughtUpAt ? nextTurn : undefined
  }
}

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

const ends = new SharedListeners('end')
const closes = new SharedListeners('close')

/**
 * A client that has stopped sending may still read, as `nc -N` does, or be gone: the network says the same of both. So
 * all are answered, except those who would be handed something that the dead would keep, and streams without end.
 */
export function answerStalledUploads(server: Server): void {
  // Not documented, and as old as Node: without it connections are ended as soon as the other side ends its half.
  Object.assign(server, { httpAllowHalfOpen: true })
}

/** Whether to count on nobody being there any more. */
export function hasHungUp(socket: Socket): boolean {
  return !socket.writable || socket.readableEnded
}

/**
 * Lets `work` know when there is nobody left to wait for, when that could not be noticed, or when `orWhen` says that it is
 * over. Most of it does not wait, and is spared the watching.
 */
export function whileWatched<Result>(
  socket: Socket,
  mayWait: boolean,
  work: (signal?: AbortSignal) => Promise<Result>,
  orWhen: (end: () => void) => () => void,
): Promise<Result> {
  if (!mayWait) return work()
  const watch = new ClientWatch(socket)
  const stop = orWhen(watch.end)
  return work(watch.signal).finally(() => {
    watch.stop()
    stop()
  })
}

class ClientWatch {
  readonly #socket: Socket
  readonly #controller = new AbortController()
  readonly end = () => this.#controller.abort()
  readonly #stopWatchingCrowd: () => void

  constructor(socket: Socket) {
    this.#socket = socket
    ends.add(socket, this.end)
    closes.add(socket, this.end)
    this.#stopWatchingCrowd = whenCrowded(socket, this.end)
    if (socket.destroyed || socket.readableEnded) this.#controller.abort()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  stop(): void {
    ends.remove(this.#socket, this.end)
    closes.remove(this.#socket, this.end)
    this.#stopWatchingCrowd()
  }
}

/**
 * Calls `send` while the client is there to be answered, and `lost` when it is certain that not one byte of the
 * answer was given to the socket. Once a byte was, nobody can know what arrived, and `lost` is never called.
 * Where there is nothing to lose, it is sent in any case.
 */
export function sendOrLose(
  request: IncomingMessage,
  response: ServerResponse,
  send: () => void,
  lost: (() => void) | null,
): void {
  // Until an earlier request on the same connection is answered, a response has no socket of its own.
  const { socket } = response
  const connection = socket ?? request.socket
  if (lost !== null && hasHungUp(connection)) {
    lost()
    endConnection(connection)
    return
  }
  if (lost !== null && socket === null) {
    // The answer waits in memory for its turn.
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

/** Once: each answer that waits for its turn asks for it. */
function endConnection(socket: Socket): void {
  if (socket.writable) socket.destroySoon()
}
