import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { EndCallbacks } from '../../handoff/end-callbacks.ts'
import { accessRule } from '../admission/access.ts'
import type { TimeSlicer } from './time-slicer.ts'

const crowded = new WeakSet<Socket>()
const waits = new EndCallbacks<Socket>()

/** Ends all waits on a connection that is not read meanwhile, so that a disconnect is not noticed. */
export function endWaits(socket: Socket): void {
  if (crowded.has(socket)) return
  crowded.add(socket)
  waits.ended(socket)
}

export function allowWaits(socket: Socket): void {
  crowded.delete(socket)
}

/** Calls `end` when requests on the connection must not wait any more. The returned function cancels that. */
export function whenCrowded(socket: Socket, end: () => void): () => void {
  if (crowded.has(socket)) {
    end()
    return () => undefined
  }
  return waits.add(socket, end)
}

interface PipelineRules {
  /** The limit of requests in progress. */
  readonly most: number
  /** Starts the requests with large responses. */
  readonly slicer: TimeSlicer
  note(address: string | undefined): void
}

/**
 * Limits the requests in progress per connection. Further requests start when earlier ones are answered, a
 * few at a time, so that other connections are served too. Meanwhile nothing more is read from the
 * connection, and pulls on it do not wait. The fast path serves one request at a time and needs no such
 * limit.
 */
export function limitPipelining(app: FastifyInstance, rules: PipelineRules): void {
  const connections = new WeakMap<Socket, Pipeline>()
  const queued = { count: 0 }
  // Must be the first hook: a request that waits here has not started.
  app.addHook('onRequest', ({ raw: request, routeOptions: { config } }, { raw: response }, done) => {
    let pipeline = connections.get(request.socket)
    if (pipeline === undefined) {
      pipeline = new Pipeline(request.socket, rules, queued)
      connections.set(request.socket, pipeline)
    }
    pipeline.enter(request, response, accessRule(config?.access)?.effect === 'read', done)
  })
}

/** The limit while others are queued. A view starts when the responses before it are written. */
const FEW_UNDER_WAY = 8
/** Node aborts those of a closing connection one by one: with more, others would wait for that. */
const MOST_QUEUED = 4000

class Pipeline {
  readonly #socket: Socket
  readonly #rules: PipelineRules
  /** The queued requests of all connections. */
  readonly #queued: { count: number }
  #underWay = 0
  /** Queued requests. A few more are parsed before reading stops, so these have arrived already. */
  readonly #waiting: { readonly isLarge: boolean; start(): void }[] = []

  constructor(socket: Socket, rules: PipelineRules, queued: { count: number }) {
    this.#socket = socket
    this.#rules = rules
    this.#queued = queued
    socket.once('close', () => {
      queued.count -= this.#waiting.length
    })
  }

  enter(request: IncomingMessage, response: ServerResponse, isLarge: boolean, serve: () => void): void {
    const start = () => {
      // When the response was written. If the connection closes first, queued requests are not served.
      response.once('close', this.#answered)
      if (!isLarge) serve()
      else
        this.#rules.slicer.add(this.#socket, () => {
          serve()
          return false
        })
    }
    if (this.#waiting.length === 0 && this.#hasRoomFor(isLarge)) {
      this.#underWay += 1
      start()
      return
    }
    if (this.#socket.destroyed) return
    if (this.#queued.count >= MOST_QUEUED) {
      this.#rules.note(request.socket.remoteAddress)
      this.#socket.destroy()
      return
    }
    this.#waiting.push({ isLarge, start })
    this.#queued.count += 1
    // Nothing more is read now: see `PacedConnection`.
    if (this.#underWay + this.#waiting.length <= this.#rules.most) return
    this.#rules.note(request.socket.remoteAddress)
    endWaits(request.socket)
  }

  #hasRoomFor(isLarge: boolean): boolean {
    if (isLarge) return this.#underWay === 0
    const { most } = this.#rules
    return this.#underWay < (this.#waiting.length > 0 ? Math.min(FEW_UNDER_WAY, most) : most)
  }

  readonly #answered = (): void => {
    this.#underWay -= 1
    if (this.#waiting.length === 0 || this.#socket.destroyed) return
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (!this.#hasRoomFor(next.isLarge)) break
      this.#waiting.shift()
      this.#queued.count -= 1
      this.#underWay += 1
      // Must come before start(), because the request may wait.
      if (this.#waiting.length === 0) allowWaits(this.#socket)
      next.start()
    }
  }
}
