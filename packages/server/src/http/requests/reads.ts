import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, RouteHandlerMethod, RouteOptions } from 'fastify'
import { accessRule } from '../admission/access.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The response has no end, so the route is not one read. */
    isStream?: boolean
  }
}

/** How many reads run at once on a node, and how many of them for one caller. */
const MOST_READS = 8
const MOST_READS_PER_CALLER = 2

interface WaitingRead {
  readonly socket: Socket
  readonly gone: () => void
  readonly start: () => void
}

/**
 * Bounds the reads that run at once: views, lists, and each page of a manifest. A read returns a bounded
 * number of rows. Further reads wait, callers take turns, and each iteration of the event loop starts at most
 * one of them, so that pulls and settles are served in between. A read whose client has gone meanwhile, or has
 * closed its side, never starts.
 */
export class Reads {
  #running = 0
  readonly #runningOf = new Map<string, number>()
  /** By caller. The first caller is next. */
  readonly #waiting = new Map<string, Set<WaitingRead>>()
  #isScheduled = false

  run<Result>(caller: string, socket: Socket, read: () => Promise<Result>): Promise<Result> {
    if (!this.#waiting.has(caller) && this.#hasRoomFor(caller)) return this.#begin(caller, read)
    const { promise, resolve } = Promise.withResolvers<Result>()
    const waiting: WaitingRead = {
      socket,
      gone: () => {
        this.#remove(caller, waiting)
        socket.destroy()
      },
      start: () => resolve(this.#begin(caller, read)),
    }
    const line = this.#waiting.get(caller)
    if (line === undefined) this.#waiting.set(caller, new Set([waiting]))
    else line.add(waiting)
    if (socket.destroyed || socket.readableEnded) waiting.gone()
    else socket.once('end', waiting.gone).once('close', waiting.gone)
    return promise
  }

  async #begin<Result>(caller: string, read: () => Promise<Result>): Promise<Result> {
    this.#running += 1
    this.#runningOf.set(caller, (this.#runningOf.get(caller) ?? 0) + 1)
    try {
      return await read()
    } finally {
      this.#running -= 1
      const left = (this.#runningOf.get(caller) ?? 1) - 1
      if (left === 0) this.#runningOf.delete(caller)
      else this.#runningOf.set(caller, left)
      this.#schedule()
    }
  }

  #hasRoomFor(caller: string): boolean {
    return this.#running < MOST_READS && (this.#runningOf.get(caller) ?? 0) < MOST_READS_PER_CALLER
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.size === 0) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      if (this.#startNext()) this.#schedule()
    })
  }

  #startNext(): boolean {
    for (const [caller, line] of this.#waiting) {
      const [next] = line
      if (next === undefined || !this.#hasRoomFor(caller)) continue
      this.#remove(caller, next)
      // The other callers are first now.
      if (this.#waiting.delete(caller)) this.#waiting.set(caller, line)
      next.socket.off('end', next.gone).off('close', next.gone)
      next.start()
      return true
    }
    return false
  }

  #remove(caller: string, read: WaitingRead): void {
    const line = this.#waiting.get(caller)
    line?.delete(read)
    if (line?.size === 0) this.#waiting.delete(caller)
  }
}

/** Runs a read when it is the turn of the client that sent the request. */
export type ReadInTurn = <Result>(request: IncomingMessage, read: () => Promise<Result>) => Promise<Result>

/** Runs the handlers of all routes that read the store as reads. */
export function boundReads(app: FastifyInstance, readInTurn: ReadInTurn): void {
  app.addHook('onRoute', (route: RouteOptions) => {
    const rule = accessRule(route.config?.access)
    // Files of the page are in memory, and need no token.
    if (rule?.effect !== 'read' || rule.roles === null || route.config?.isStream === true) return
    const { handler } = route
    const bounded: RouteHandlerMethod = function (request, reply) {
      return readInTurn(request.raw, async () => handler.call(this, request, reply))
    }
    route.handler = bounded
  })
}
