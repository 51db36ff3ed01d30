import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Requests of one connection that are served at once. A client that sends ahead gains nothing beyond a few. */
export const MAX_UNDER_WAY = 100

/**
 * Bounds the requests under way per connection. Further ones wait until earlier ones are answered, and meanwhile
 * nothing more is read from the connection. The express lane serves one at a time and needs no such bound.
 */
export function boundPipelining(app: FastifyInstance): void {
  const connections = new WeakMap<Socket, Pipeline>()
  // Before all other hooks: what waits here has not begun.
  app.addHook('onRequest', ({ raw: request }, { raw: response }, done) => {
    let pipeline = connections.get(request.socket)
    if (pipeline === undefined) {
      pipeline = new Pipeline(request.socket)
      connections.set(request.socket, pipeline)
    }
    pipeline.enter(request, response, done)
  })
}

class Pipeline {
  readonly #socket: Socket
  #underWay = 0
  /** Node reads a chunk to its end before it stops, so some requests are here already. */
  readonly #waiting: (() => void)[] = []
  #isWatched = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  enter(request: IncomingMessage, response: ServerResponse, serve: () => void): void {
    const start = () => {
      this.#underWay += 1
      // When the answer was given to the socket. If the connection closes before, nothing that waits is served.
      response.once('close', this.#answered)
      serve()
    }
    if (this.#underWay < MAX_UNDER_WAY) {
      start()
      return
    }
    this.#waiting.push(start)
    this.#watch()
    request.socket.pause()
  }

  readonly #answered = (): void => {
    this.#underWay -= 1
    if (this.#waiting.length === 0 || this.#socket.destroyed) return
    this.#waiting.shift()?.()
    // The last one may need the rest of its body.
    if (this.#waiting.length === 0) this.#socket.resume()
  }

  /** Node resumes a connection after each answer and for each body. */
  #watch(): void {
    if (this.#isWatched) return
    this.#isWatched = true
    this.#socket.on('resume', () => {
      if (this.#waiting.length > 0) this.#socket.pause()
    })
  }
}
