import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Admission } from '../admission/admission.ts'
import type { Proxies } from '../admission/proxies.ts'
import type { Refuse } from '../answers/error-answers.ts'
import type { AdmissionBudget } from '../budget/budget.ts'
import type { Serve } from '../requests/exchange.ts'
import type { RequestCounts } from '../requests/request-counts.ts'
import type { Service } from '../service.ts'
import { FastConnection } from './connection.ts'
import type { FastRoute } from './head-cache.ts'
import type { ParsedHead } from './head-parser.ts'

const PATIENCE_MILLIS = 1000

type LaneService = Pick<Service, 'handOff' | 'keyOwner' | 'isSecure'>

/**
 * The way past Node's HTTP server and Fastify for the two requests that workers make all day. Both are made for any
 * request there is; a null server on them takes 50 µs of its thread for a pull and a settle, one on bare sockets 25.
 *
 * It serves only what is plain in every respect and admitted at the door. With the first request that is not, the
 * connection goes to Node's server with every byte of it, and stays there: the same functions serve it.
 */
export class FastPath {
  readonly #admission: Admission
  readonly #budget: AdmissionBudget
  readonly #refuse: Refuse
  readonly #service: LaneService
  readonly #requests: RequestCounts
  readonly #proxies: Proxies
  readonly #routes = new Map<string, FastRoute>()
  readonly #connections = new Set<FastConnection>()

  constructor(
    { admission, budget }: { readonly admission: Admission; readonly budget: AdmissionBudget },
    refuse: Refuse,
    service: LaneService,
    requests: RequestCounts,
    proxies: Proxies,
  ) {
    this.#admission = admission
    this.#budget = budget
    this.#refuse = refuse
    this.#service = service
    this.#requests = requests
    this.#proxies = proxies
  }

  open(
    method: ParsedHead['method'],
    prefix: string,
    path: string,
    urgency: FastRoute['urgency'],
    serve: Serve,
  ): void {
    const counts = this.#requests.of(method, path)
    this.#routes.set(`${method} ${prefix}${path}`, { serve, counts, urgency })
  }

  /** Every connection goes to Node's server with its first bytes. */
  serveNothing(): void {
    this.#routes.clear()
  }

  /** From here on new connections of `server` come here first. */
  before(server: Server, headTimeoutMillis = PATIENCE_MILLIS): void {
    const { isSecure } = this.#service
    const arrival = isSecure ? 'secureConnection' : 'connection'
    const others = server.listeners(arrival) as ((socket: Socket) => void)[]
    server.removeAllListeners(arrival)
    server.on(arrival, (socket: Socket) => {
      const connection = new FastConnection(socket, {
        keepAliveMillis: server.keepAliveTimeout,
        isSecure,
        routeOf: (head) => this.#routeOf(head, socket),
        keyOwner: this.#service.keyOwner,
        refuse: this.#refuse,
        budget: this.#budget,
        headTimeoutMillis,
        isLast: () => this.#service.handOff.isDraining,
        handOver: () => {
          for (const serve of others) serve.call(server, socket)
        },
        left: () => this.#connections.delete(connection),
      })
      this.#connections.add(connection)
    })
  }

  /** Tokens have changed: what was admitted may be refused now. */
  forgetHeads(): void {
    for (const connection of this.#connections) connection.forgetHeads()
  }

  closeIdle(): void {
    for (const connection of this.#connections) connection.closeIfIdle()
  }

  closeAll(): void {
    for (const connection of this.#connections) connection.close()
  }

  #routeOf(head: ParsedHead, socket: Socket): FastRoute | undefined {
    const at = head.url.indexOf('?')
    // A query that says nothing is not plain.
    const path = at === -1 || at === head.url.length - 1 ? head.url : head.url.slice(0, at)
    const route = this.#routes.get(`${head.method} ${path}`)
    if (route === undefined) return undefined
    // A plain head has no field twice, which is all that is looked for in raw headers.
    const headers = { ...head.headers, host: this.#proxies.hostOf(socket, head.headers) }
    const asked = { headers, rawHeaders: [], httpVersion: '1.1' }
    return this.#admission(asked) === undefined ? route : undefined
  }
}
