import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Distribution, DURATION_SECONDS } from '../../handoff/counts/counts.ts'

/** The requests of one route that were answered. */
export class RouteCounts {
  readonly method: string
  readonly route: string
  readonly statuses = new Map<number, number>()
  readonly seconds = new Distribution(DURATION_SECONDS)

  constructor(method: string, route: string) {
    this.method = method
    this.route = route
  }

  /** `millis` is null for those that are not timed. */
  answered(status: number, millis: number | null): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
    if (millis !== null) this.seconds.add(millis / 1000)
  }
}

/** One entry per route, however many tasks are asked for: what clients make up does not become a name here. */
export class RequestCounts {
  readonly #routes = new Map<string, RouteCounts>()

  /** `path` as the route has it, without the base path. */
  of(method: string, path: string): RouteCounts {
    const route = path.replaceAll(/:(\w+)/g, '{$1}')
    const key = `${method} ${route}`
    let counts = this.#routes.get(key)
    if (counts === undefined) {
      counts = new RouteCounts(method, route)
      this.#routes.set(key, counts)
    }
    return counts
  }

  routes(): Iterable<RouteCounts> {
    return this.#routes.values()
  }
}

/** The files of the page have names that change with each version. */
const PAGE = 'page'
/** For what has no route: an entry for all of it. */
const NONE = 'none'

/** Counts what Fastify answers. Requests that do not come to it are counted in the fast path. */
export function countRequests(app: FastifyInstance, requests: RequestCounts): void {
  app.addHook('onRoute', (route) => {
    const path = route.config?.access === 'open' ? PAGE : route.routePath
    const others = route.onRequest === undefined ? [] : [route.onRequest].flat()
    // Before everything else: what is refused at the door counts, too.
    route.onRequest = [counting(requests.of(String(route.method), path)), ...others]
  })
}

/** Methods and paths that no route has. */
export const countingStrays = (requests: RequestCounts) => counting(requests.of(NONE, NONE))

/** A listener of our own: Fastify's hook for this, onResponse, took about 2 µs of each request, and this half of that. */
function counting(counts: RouteCounts) {
  return (_request: FastifyRequest, { raw: response }: FastifyReply, done: () => void): void => {
    const began = performance.now()
    // Not when it was written to the end: a stream of events is ended by whoever reads it.
    response.once('close', () => {
      if (!response.headersSent) return
      counts.answered(response.statusCode, untimed.has(response) ? null : performance.now() - began)
    })
    done()
  }
}

const untimed = new WeakSet<ServerResponse>()

/** How long it takes says nothing about the node: it waits for work, or goes on until somebody ends it. */
export function exemptFromTimeout({ raw }: FastifyReply): void {
  untimed.add(raw)
}
