import type { Socket } from 'node:net'
import type { ConnectionGate } from './connections.ts'
import type { ClientLimits, ReachedLimits } from './limits.ts'

/** A client that reads fewer bytes than this within the timeout is disconnected. */
const LEAST_TAKEN_BYTES = 64 * 1024
const LOOK_EVERY_MILLIS = 1000

/** The state of a connection when it was first seen with unread data. */
interface Unread {
  readonly since: number
  readonly sent: number
}

/** Closes connections whose clients do not read their responses, which would otherwise stay in memory. */
export class UnreadAnswers {
  readonly #connections: Pick<ConnectionGate, 'sockets'>
  readonly #limits: Pick<ClientLimits, 'answerMillis' | 'unsentBytes'>
  readonly #reached: ReachedLimits
  readonly #unread = new WeakMap<Socket, Unread>()
  readonly #timer: NodeJS.Timeout
  /** As of the last check. */
  unsentBytes = 0

  constructor(
    connections: Pick<ConnectionGate, 'sockets'>,
    limits: Pick<ClientLimits, 'answerMillis' | 'unsentBytes'>,
    reached: ReachedLimits,
  ) {
    this.#connections = connections
    this.#limits = limits
    this.#reached = reached
    const every = Math.min(LOOK_EVERY_MILLIS, limits.answerMillis)
    this.#timer = setInterval(() => this.#look(performance.now()), every).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(now: number): void {
    const behind: Socket[] = []
    let unsent = 0
    for (const socket of this.#connections.sockets) {
      const { writableLength } = socket
      if (writableLength === 0) {
        this.#unread.delete(socket)
        continue
      }
      unsent += writableLength
      behind.push(socket)
      if (this.#isStuck(socket, now)) {
        unsent -= writableLength
        this.#close(socket, 'answer-time')
      }
    }
    if (unsent > this.#limits.unsentBytes) unsent = this.#closeSome(behind, unsent)
    this.unsentBytes = unsent
  }

  #isStuck(socket: Socket, now: number): boolean {
    const sent = sentBytes(socket)
    const known = this.#unread.get(socket)
    if (known === undefined || sent - known.sent >= LEAST_TAKEN_BYTES) {
      this.#unread.set(socket, { since: now, sent })
      return false
    }
    return now - known.since >= this.#limits.answerMillis
  }

  /** Closes the connections with the most unsent bytes first. */
  #closeSome(behind: readonly Socket[], unsent: number): number {
    let left = unsent
    for (const socket of behind.toSorted((a, b) => b.writableLength - a.writableLength)) {
      if (left <= this.#limits.unsentBytes) break
      left -= socket.writableLength
      this.#close(socket, 'unsent-bytes')
    }
    return left
  }

  #close(socket: Socket, limit: 'answer-time' | 'unsent-bytes'): void {
    this.#reached.note(limit, socket.remoteAddress)
    socket.destroy()
  }
}

/** The bytes that the kernel has accepted: a large write is accepted in parts. */
function sentBytes(socket: Socket): number {
  // Not documented. Node's own socket timeouts use the same numbers.
  const { _handle: handle } = socket as Socket & { _handle?: Partial<StreamHandle> | null }
  return (handle?.bytesWritten ?? 0) - (handle?.writeQueueSize ?? 0)
}

interface StreamHandle {
  readonly bytesWritten: number
  readonly writeQueueSize: number
}
