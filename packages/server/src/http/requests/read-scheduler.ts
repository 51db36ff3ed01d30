import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { RouteHandlerMethod, RouteOptions } from 'fastify'
import { SetsByKey } from '../../handoff/sets-by-key.ts'
import type { AccessRule } from '../admission/access.ts'

/** How many reads run at once on a node, and how many of them for one caller. */
const MOST_READS = 8
const MOST_READS_PER_CALLER = 2
/** Beyond this many reads that wait, a client that has closed its side counts as gone. */
const MOST_OF_CLOSED = 64

/**
 * After a read, the next one waits until the event loop has spent twice its time on other work. An iteration
 * counts at least this long, so that a loop with nothing else to do reads at full speed.
 */
const REST_SHARE = 0.5
const LEAST_MILLIS = 0.25
/** Of the time of one read, most may be that of other work, while it waits for the store. */
const MOST_MILLIS = 50

/** How long the event loop was busy, in milliseconds. */
export const busyMillis = (): number => performance.eventLoopUtilization().active

interface WaitingRead {
  readonly socket: Socket
  readonly gone: () => void
  /** It sends no more. */
  readonly closed: () => void
  readonly start: () => void
}

/**
 * Limits the reads that run at once: views, lists, and each page of a manifest. A read returns a bounded
 * number of rows. Further reads wait, callers take turns, and between reads the event loop has time for pulls
 * and settles. A read whose client has gone meanwhile never starts. A client that has only closed its side may
 * still read, or may have gone: it waits while few reads do, and none of the same caller runs.
 */
export class ReadScheduler {
  readonly #clock: () => number
  /** Time that reads owe to other work. */
  #owed = 0
  /** When some of it was last paid back. */
  #paidAt = 0
  #running = 0
  readonly #runningOf = new SetsByKey<string, object>()
  /** By caller. The first caller is next. */
  readonly #waiting = new SetsByKey<string, WaitingRead>()
  #waitingReads = 0
  #isScheduled = false

  constructor(clock: () => number = busyMillis) {
    this.#clock = clock
  }

  run<Result>(caller: string, socket: Socket, read: () => Promise<Result>): Promise<Result> {
    if (this.#owed === 0 && !this.#waiting.has(caller) && this.#hasRoomFor(caller))
      return this.#begin(caller, read)
    const { promise, resolve } = Promise.withResolvers<Result>()
    const waiting: WaitingRead = {
      socket,
      gone: () => {
        this.#remove(caller, waiting)
        socket.destroy()
      },
      closed: () => {
        if (this.#waitingReads > MOST_OF_CLOSED || !this.#hasRoomFor(caller)) waiting.gone()
      },
      start: () => resolve(this.#begin(caller, read)),
    }
    this.#waiting.add(caller, waiting)
    this.#waitingReads += 1
    if (socket.destroyed) waiting.gone()
    else if (socket.readableEnded) waiting.closed()
    else socket.once('end', waiting.closed)
    if (!socket.destroyed) socket.once('close', waiting.gone)
    if (this.#owed > 0) this.#schedule()
    return promise
  }

  async #begin<Result>(caller: string, read: () => Promise<Result>): Promise<Result> {
    const running = {}
    this.#running += 1
    this.#runningOf.add(caller, running)
    const began = this.#clock()
    try {
      return await read()
    } finally {
      this.#paidAt = this.#clock()
      this.#owed += Math.min(this.#paidAt - began, MOST_MILLIS)
      this.#running -= 1
      this.#runningOf.remove(caller, running)
      this.#schedule()
    }
  }

  #hasRoomFor(caller: string): boolean {
    return this.#running < MOST_READS && (this.#runningOf.get(caller)?.size ?? 0) < MOST_READS_PER_CALLER
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.size === 0) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#payBack()
      if (this.#owed > 0 || this.#startNext()) this.#schedule()
    })
  }

  #payBack(): void {
    const now = this.#clock()
    this.#owed = Math.max(0, this.#owed - Math.max(LEAST_MILLIS, REST_SHARE * (now - this.#paidAt)))
    this.#paidAt = now
  }

  #startNext(): boolean {
    for (const [caller, line] of this.#waiting) {
      const [next] = line
      if (next === undefined || !this.#hasRoomFor(caller)) continue
      this.#remove(caller, next)
      // The other callers are first now.
      if (this.#waiting.delete(caller)) this.#waiting.set(caller, line)
      next.socket.off('end', next.closed).off('close', next.gone)
      next.start()
      return true
    }
    return false
  }

  #remove(caller: string, read: WaitingRead): void {
    if (this.#waiting.remove(caller, read)) this.#waitingReads -= 1
  }
}

export type ReadInTurn = <Result>(request: IncomingMessage, read: () => Promise<Result>) => Promise<Result>

/** The handler of a route, which is one read if the route reads the store. */
export function inTurns(
  { handler, config }: RouteOptions,
  rule: AccessRule | undefined,
  readInTurn: ReadInTurn,
): RouteHandlerMethod {
  // Files of the page are in memory, and need no token.
  if (rule?.effect !== 'read' || rule.roles === null || config?.isStream === true) return handler
  return function (request, reply) {
    return readInTurn(request.raw, async () => handler.call(this, request, reply))
  }
}
