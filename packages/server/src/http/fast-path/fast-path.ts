import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { FORWARDED_HEADER } from '../../cluster/forwarded-request.ts'
import { type AccessRule, accessRules, type CheckedAccess } from '../admission/access.ts'
import type { Admission } from '../admission/admission.ts'
import type { Proxies } from '../admission/proxies.ts'
import { intercept } from '../intercept.ts'
import type { RequestCounts } from '../observability/answered-requests.ts'
import type { Serve } from '../requests/exchange.ts'
import { FastConnection, type FastPathParts } from './connection.ts'
import type { FastRoute, ParsedHead } from './heads.ts'

const HEAD_TIMEOUT_MILLIS = 1000

interface Parts extends FastPathParts {
  readonly admissionOf: (rule: AccessRule) => Admission
  readonly requests: RequestCounts
  readonly proxies: Proxies
}

/**
 * Serves the two most frequent requests of workers, pull and settle, without Node's HTTP server and Fastify
 * (bench scenario one-by-one).
 *
 * It serves only plain requests (see `parseHead`) that pass admission. On the first other request, the
 * connection is passed to Node's server with all bytes of that request, and stays there. Both paths use the
 * same handlers.
 */
export class FastPath {
  readonly #parts: Parts
  readonly #routes = new Map<string, { readonly route: FastRoute; readonly admission: Admission }>()
  readonly #connections = new Set<FastConnection>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Serves a route here too, with the admission and urgency that its access has. */
  addRoute(
    method: ParsedHead['method'],
    prefix: string,
    path: string,
    access: CheckedAccess,
    serve: Serve,
  ): void {
    const rule = accessRules[access]
    const counts = this.#parts.requests.of(method, path)
    const route = { serve, counts, urgency: rule.urgency }
    this.#routes.set(`${method} ${prefix}${path}`, { route, admission: this.#parts.admissionOf(rule) })
  }

  /** Passes every connection to Node's server with its first bytes. */
  disable(): void {
    this.#routes.clear()
  }

  /** Handles new connections of `server` before its own listeners do. */
  interceptConnections(server: Server, headTimeoutMillis = HEAD_TIMEOUT_MILLIS): void {
    const arrival = this.#parts.isSecure ? 'secureConnection' : 'connection'
    intercept(server, arrival, (socket, handOver) => {
      const connection = new FastConnection(socket, {
        ...this.#parts,
        keepAliveMillis: server.keepAliveTimeout,
        routeOf: (head) => this.#routeOf(head, socket),
        headTimeoutMillis,
        handOver,
        left: () => this.#connections.delete(connection),
      })
      this.#connections.add(connection)
    })
  }

  /** Called when tokens have changed: requests that were admitted before may be refused now. */
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
    // A request with an empty query is not plain, and matches no route.
    const path = at === -1 || at === head.url.length - 1 ? head.url : head.url.slice(0, at)
    const known = this.#routes.get(`${head.method} ${path}`)
    const { forwarding } = this.#parts
    if (known === undefined) return undefined
    if (forwarding !== null && head.headers[FORWARDED_HEADER] !== undefined)
      return { ...known.route, admission: known.admission }
    // Admission only checks raw headers for repeated fields, and a plain head has none.
    const headers = { ...head.headers, host: this.#parts.proxies.hostOf(socket, head.headers) }
    const asked = { headers, rawHeaders: [], httpVersion: '1.1' }
    return known.admission(asked) === undefined ? known.route : undefined
  }
}
