import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { DURATION_SECONDS, Histogram } from '../../handoff/counts/counts.ts'
import type { Log } from '../../handoff/log.ts'

export class RouteCounts {
  readonly method: string
  readonly route: string
  readonly statuses = new Map<number, number>()
  readonly seconds = new Histogram(DURATION_SECONDS)

  constructor(method: string, route: string) {
    this.method = method
    this.route = route
  }

  /** `millis` is null for requests that are excluded from the duration histogram. */
  answered(status: number, millis: number | null): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
    if (millis !== null) this.seconds.add(millis / 1000)
  }
}

const PAGE = 'page'
const NONE = 'none'

/** One entry per route, not per path, so that clients cannot create new label values. */
export class RequestCounts {
  /** Requests that the leader has answered. They are counted there by route. */
  forwarded = 0
  readonly #routes = new Map<string, RouteCounts>()

  /** `path` is the pattern of the route, without the base path. */
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

  /** One label for all files of the page, because their names change with each version. */
  ofRoute({ method, config, routePath }: RouteOptions & { routePath: string }): RouteCounts {
    return this.of(String(method), config?.access === 'open' ? PAGE : routePath)
  }

  /** One label for all requests that match no route. */
  get ofNone(): RouteCounts {
    return this.of(NONE, NONE)
  }

  routes(): Iterable<RouteCounts> {
    return this.#routes.values()
  }
}

/** Counts requests that Fastify answers; the fast path counts its own. Uses a listener, because Fastify's onResponse hook costs more per request. */
export function counting(counts: RouteCounts) {
  return (_request: FastifyRequest, { raw: response }: FastifyReply, done: () => void): void => {
    const began = performance.now()
    // `close` and not `finish`: an event stream is ended by its client.
    response.once('close', () => {
      if (!response.headersSent || forwarded.has(response)) return
      counts.answered(response.statusCode, untimed.has(response) ? null : performance.now() - began)
    })
    done()
  }
}

const forwarded = new WeakSet<ServerResponse>()

export function countAsForwarded(response: ServerResponse, requests: RequestCounts): void {
  forwarded.add(response)
  requests.forwarded += 1
}

const untimed = new WeakSet<ServerResponse>()

/** Excludes a request from the duration histogram: it waits for work, or streams until one side ends it. */
export function excludeFromDurations({ raw }: FastifyReply): void {
  untimed.add(raw)
}

type Answered = Pick<IncomingMessage, 'method' | 'url' | 'headers' | 'socket'>

export type LogAnswer = (request: Answered, status: number, millis: number) => void

/** `clientOf` returns the address of the client and the scheme it used. */
export function answerLog(log: Log, clientOf: (request: Answered) => object): LogAnswer {
  return (request, status, millis) => {
    const { method, url, headers } = request
    const fields = { method, url, status, millis: Math.round(millis * 10) / 10, ...clientOf(request) }
    log.debug({ ...fields, instance: headers['x-instance-id'] }, 'answered')
  }
}

/** Logs each request. The hook has a cost, so it is only added when requests are logged. */
export function logRequests(app: FastifyInstance, logAnswer: LogAnswer): void {
  app.addHook('onResponse', (request, reply, done) => {
    logAnswer(request.raw, reply.statusCode, reply.elapsedTime)
    done()
  })
}
