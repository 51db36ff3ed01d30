import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import {
  digestOf,
  FORWARDED_HEADER,
  type ForwardedAnswer,
  NODE_HEADER,
} from '../cluster/forwarded-request.ts'
import type { AdmittedRequest } from '../cluster/forwarder.ts'
import type { Cluster } from '../cluster/open-cluster.ts'
import type { Access } from './admission/access.ts'
import type { Proxies } from './admission/proxies.ts'
import { userOf } from './admission/proxy-users.ts'
import type { AnswerHeaders } from './answers/headers.ts'
import type { Problem } from './answers/problems.ts'
import type { ArrivedBody } from './bodies/arriving-body.ts'
import { bodyOf } from './bodies/json-body.ts'
import type { FastRequest } from './fast-path/heads.ts'
import { admittedRequestOf, NotServed, noteForwardedClient } from './forwarded-client.ts'
import type { ClientLimiter } from './limits/limiter.ts'
import { countAsForwarded, type RequestCounts } from './observability/answered-requests.ts'
import { whenHalfClosed } from './requests/disconnects.ts'

/** Names the node that clients may use directly, in forwarded answers. */
const LEADER_HEADER = 'baton-leader'

/** Probes, metrics, and the files of the page are of the node itself. */
const ownAccess: ReadonlySet<Access | undefined> = new Set(['probe', 'open', 'metrics', undefined])

type Forwarded = Pick<IncomingMessage, 'method' | 'url' | 'headers'>

interface ForwardingParts {
  readonly cluster: Cluster
  readonly basePath: string
  readonly proxies: Proxies
  readonly limiter: ClientLimiter
  readonly requests: RequestCounts
  readonly instanceId: string
  /** Where clients reach this node; null if they should not use it directly. */
  readonly advertiseUrl: string | null
  readonly handOff: { readonly isDraining: boolean }
}

/** A body as it arrived, of a request that this node does not serve, or not yet. */
class KeptBody {
  readonly arrived: ArrivedBody

  constructor(arrived: ArrivedBody) {
    this.arrived = arrived
  }
}

/** Hooks of the routes on a node with others: forward requests while another node leads, serve forwarded ones. */
export class Forwarding {
  readonly cluster: Cluster
  readonly #parts: ForwardingParts

  constructor(parts: ForwardingParts) {
    this.#parts = parts
    this.cluster = parts.cluster
  }

  /** The address, host and scheme that a forwarded request had at the follower. Must run before admission. */
  admitForwarded(app: FastifyInstance): void {
    app.addHook('onRequest', ({ raw }, reply, done) => {
      if (raw.headers[FORWARDED_HEADER] !== undefined) {
        this.#admit(raw, raw.socket)
        reply.raw.setHeader(NODE_HEADER, this.cluster.nodeId)
      }
      done()
    })
  }

  /** Checks the signature of a forwarded request, and notes who its client is. */
  #admit({ method = '', url = '', headers }: Forwarded, socket: Socket): AdmittedRequest {
    const { cluster, basePath, limiter } = this.#parts
    const admitted = cluster.forwarder.admit({ method, target: url.slice(basePath.length), headers }, socket)
    if (typeof admitted === 'string') throw new NotServed(admitted)
    limiter.connections.exemptFromAddressLimit(socket)
    noteForwardedClient(headers, admitted)
    return admitted
  }

  /** Checks a forwarded request on the fast path. Returns headers of its answer, and why it is refused. */
  admitFast(
    { method, url, head: { headers }, admission }: FastRequest,
    body: Buffer,
    socket: Socket,
  ): { readonly headers: AnswerHeaders; readonly refusal: Problem | undefined } {
    const { advertiseUrl } = this.#parts
    const admitted = this.#admit({ method, url, headers }, socket)
    if (digestOf(body) !== admitted.digest) throw new NotServed('damaged')
    const refusal = admission?.({ headers, rawHeaders: [], httpVersion: '1.1' })
    const named = refusal !== undefined || advertiseUrl === null ? [] : [LEADER_HEADER, advertiseUrl]
    return { headers: [NODE_HEADER, this.cluster.nodeId, ...named], refusal }
  }

  forwards({ config: { access, servedByAll } = {} }: RouteOptions): boolean {
    return !ownAccess.has(access) && servedByAll !== true
  }

  /** Keeps the bytes of a body that this node must not parse, because it forwards or refuses the request. */
  readonly keepUnlessServed = ({ raw }: FastifyRequest, body: ArrivedBody): KeptBody | undefined => {
    const forwarded = admittedRequestOf(raw.headers)
    const isServed = forwarded === undefined ? this.cluster.leads : digestOf(body.bytes) === forwarded.digest
    return isServed ? undefined : new KeptBody(body)
  }

  readonly serveOrForward = (
    request: FastifyRequest,
    reply: FastifyReply,
    done: (error?: Error) => void,
  ): void => {
    const { cluster, advertiseUrl } = this.#parts
    const { raw } = request
    const forwarded = admittedRequestOf(raw.headers)
    if (forwarded !== undefined) {
      const { body } = request
      const isIntact = body === undefined ? forwarded.digest === EMPTY_DIGEST : !(body instanceof KeptBody)
      if (!isIntact) throw new NotServed('damaged')
      if (!cluster.leads) throw new NotServed('not_leading')
      if (advertiseUrl !== null) reply.raw.setHeader(LEADER_HEADER, advertiseUrl)
    }
    const serveHere = () => {
      reply.raw.once('close', cluster.countRequest())
      if (request.body instanceof KeptBody) request.body = bodyOf(request, request.body.arrived)
      done()
    }
    if (cluster.leads) serveHere()
    else
      this.#forward(request, reply)
        .then((isAnswered) => {
          if (!isAnswered) serveHere()
        })
        .catch(done)
  }

  async #forward(request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    const { cluster, basePath, proxies, instanceId } = this.#parts
    const { raw } = request
    const { headers, socket, method = 'GET', url = '/' } = raw
    const hangUp = new AbortController()
    // A complete answer is closed, too.
    const hungUp = () => {
      if (!reply.raw.writableFinished) hangUp.abort()
    }
    reply.raw.once('close', hungUp)
    const unwatch = endsWithItsClient(request) ? whenHalfClosed(socket, hungUp) : () => undefined
    const { body } = request
    const forwardable = {
      method,
      target: url.slice(basePath.length),
      headers,
      body: body instanceof KeptBody ? body.arrived.bytes : null,
      client: {
        address: proxies.addressOf(socket, headers),
        host: proxies.hostOf(socket, headers) ?? null,
        scheme: proxies.schemeOf(socket, headers),
        user: userOf(headers) ?? null,
        instanceId,
      },
      arrivedAt: performance.now() - reply.elapsedTime,
      signal: hangUp.signal,
    }
    try {
      const isAnswered = await cluster.forwarder.forward(forwardable, this.#answerOver(reply))
      if (isAnswered && !reply.raw.headersSent) {
        // The client closed its side, and nothing is sent to it.
        reply.hijack()
        socket.destroySoon()
      }
      return isAnswered
    } finally {
      unwatch()
      reply.raw.off('close', hungUp)
    }
  }

  #answerOver(reply: FastifyReply): ForwardedAnswer {
    const { raw: response } = reply
    let lengthLeft = Number.NaN
    return {
      head: (status, headers) => {
        reply.hijack()
        countAsForwarded(response, this.#parts.requests)
        lengthLeft = Number(headers['content-length'] ?? Number.NaN)
        response.writeHead(status, this.#answerHeaders(headers))
        // The first event of a stream may be long in coming.
        if (Number.isNaN(lengthLeft)) response.flushHeaders()
      },
      write: (chunk, drained) => {
        lengthLeft -= chunk.length
        if (lengthLeft === 0) {
          response.end(chunk)
          return true
        }
        const isTaken = response.write(chunk)
        if (!isTaken) response.once('drain', drained)
        return isTaken
      },
      end: () => {
        if (!response.writableEnded) response.end()
      },
      cut: () => response.destroy(),
    }
  }

  #answerHeaders(headers: IncomingHttpHeaders): string[] {
    const sent = Object.entries(headers).flatMap(([name, value = '']) =>
      NOT_PASSED_ON.has(name) ? [] : [value].flat().flatMap((one) => [name, one]),
    )
    if (this.#parts.handOff.isDraining) sent.push('connection', 'close')
    return sent
  }
}

const NOT_PASSED_ON = new Set(['connection', 'keep-alive', 'transfer-encoding', NODE_HEADER])

const EMPTY_DIGEST = digestOf(null)

/** A client that closes its side may be gone: then it must not hold leases, and its stream ends. */
function endsWithItsClient({ raw, routeOptions }: FastifyRequest): boolean {
  const { url = '' } = routeOptions
  if (url.endsWith('/pull') || url.endsWith('/events')) return true
  return url.endsWith('/settle') && (raw.headers['prefer'] !== undefined || raw.url?.includes('?') === true)
}

/** The stream to a follower. It is authenticated by its signature, so it needs no other admission. */
export function peerRoute(app: FastifyInstance, cluster: Cluster): void {
  app.route({
    method: 'GET',
    url: '/peer/stream',
    config: { access: 'probe' },
    exposeHeadRoute: false,
    schema: { hide: true },
    handler: ({ raw }, reply) => {
      reply.hijack()
      cluster.serveStream(raw, reply.raw)
    },
  })
}
