import { MAX_TASK_ID_LENGTH } from '@baton/protocol'
import Fastify, { type FastifyInstance } from 'fastify'
import type { Cluster } from '../cluster/open-cluster.ts'
import type { Log } from '../handoff/log.ts'
import { type AdmissionOptions, admission as admissionOf } from './admission/admission.ts'
import { Proxies, trustProxies } from './admission/proxies.ts'
import { signInByProxies } from './admission/proxy-users.ts'
import { answerClientError, isTooLate } from './answers/client-errors.ts'
import { keepOutOfCaches, secureAnswers, securityHeaders } from './answers/headers.ts'
import { errorAnswers, problemMapper } from './answers/problems.ts'
import { describeRoutes, descriptiveSchemas, openapiRoute } from './api-document/api-document.ts'
import { acceptJsonBodies, answerExpectHeader } from './bodies/json-body.ts'
import type { ShapeLimits } from './bodies/json-shape.ts'
import { FastPath } from './fast-path/fast-path.ts'
import { Forwarding, peerRoute } from './forwarding.ts'
import { ClientLimiter } from './limits/limiter.ts'
import type { ClientLimits } from './limits/limits.ts'
import { closeGracefully } from './listening.ts'
import { answerLog, logRequests, RequestCounts } from './observability/answered-requests.ts'
import { AuditLog, auditReloads } from './observability/audit.ts'
import { allowHalfOpen } from './requests/disconnects.ts'
import { paceReading } from './requests/paced-reading.ts'
import { limitPipelining } from './requests/pipelining.ts'
import { type ReadInTurn, ReadScheduler } from './requests/read-scheduler.ts'
import { TimeSlicer } from './requests/time-slicer.ts'
import { DEFAULT_BODY_LIMIT_BYTES, type RouteContext } from './route-context.ts'
import { hookRoutes } from './route-hooks.ts'
import { auditRoutes, requesters } from './routes/audit-routes.ts'
import { callBackRoute } from './routes/call-back-route.ts'
import { controlRoutes } from './routes/control-routes.ts'
import { eventsRoute, OpenStreams } from './routes/events-route.ts'
import { instanceRoutes } from './routes/instance-routes.ts'
import { manifestRoute } from './routes/manifest-route.ts'
import { monitoringRoutes } from './routes/monitoring-routes.ts'
import { answerUnknownRoutes } from './routes/not-found.ts'
import { pageRoutes, readPageFiles } from './routes/page-routes.ts'
import { releaseRoutes } from './routes/release-routes.ts'
import { settingsRoutes } from './routes/settings-routes.ts'
import { subscriptionRoutes } from './routes/subscription-routes.ts'
import { tableRoutes } from './routes/table-routes.ts'
import { taskRoutes } from './routes/task-routes.ts'
import { throughputRoutes } from './routes/throughput-routes.ts'
import { pullRoute, renewRoute, settleRoute } from './routes/worker-routes.ts'
import { refusePlainHttp, serverOptions, serveTls, type TlsFiles } from './tls.ts'

interface HttpOptions {
  readonly context: Omit<RouteContext, 'isSecure' | 'cluster' | 'requesterOf'>
  readonly admission: AdmissionOptions
  readonly limits: ClientLimits
  /** Empty, or a path without a trailing slash. */
  readonly basePath: string
  /** Whether plain pulls and settles bypass Node's HTTP server. */
  readonly isFastPathOn?: boolean
  /** Null: requests are not logged. */
  readonly requestLog: Log | null
  /** Null: the service serves plain HTTP. */
  readonly tls?: TlsFiles | null
  /** Addresses and networks of the proxies whose X-Forwarded headers are trusted. */
  readonly trustedProxies?: readonly string[]
  /** Addresses and networks of the proxies at which users sign in. */
  readonly authProxies?: readonly string[]
  /** Null: this node is the only one. */
  readonly cluster: Cluster | null
  /** The name of this node. */
  readonly instanceId: string
  /** Where clients reach this node; null if they should not use it directly. */
  readonly advertiseUrl: string | null
  readonly timeouts?: Partial<Timeouts>
}

export interface Timeouts {
  /** How long a request may take to arrive, headers and body. */
  readonly requestMillis: number
  /** How often requests are checked for this timeout. */
  readonly checkMillis: number
  /** How long a closing service waits for requests in progress. */
  readonly closeMillis: number
}

/** `closeMillis` is below the ten seconds that Docker waits before it kills a container. */
const standardTimeouts: Omit<Timeouts, 'requestMillis'> = { checkMillis: 5000, closeMillis: 8000 }

/** The longest task id, at four bytes per character, percent-encoded. */
const LONGEST_SEGMENT = MAX_TASK_ID_LENGTH * 4 * 3
/** The longest time in which the headers of a request arrive. */
export const HEADERS_MILLIS = 60_000
export const HEADERS_LIMIT_BYTES = 2 * 16_384

export async function buildHttp({
  context: given,
  admission,
  limits,
  basePath,
  requestLog,
  tls = null,
  trustedProxies = [],
  authProxies = [],
  isFastPathOn = true,
  cluster,
  instanceId,
  advertiseUrl,
  timeouts,
}: HttpOptions): Promise<FastifyInstance> {
  const { requestMillis, checkMillis, closeMillis } = {
    ...standardTimeouts,
    requestMillis: limits.requestMillis,
    ...timeouts,
  }
  const proxies = new Proxies(trustedProxies, tls !== null)
  const requesterOf = requesters(given.tokens, proxies)
  const context = { ...given, isSecure: tls !== null, cluster, requesterOf }
  const { handOff, tokens, log } = context
  const audit = new AuditLog(log)
  const problemOf = problemMapper(context)
  const answerError = errorAnswers(context, problemOf)
  const requests = new RequestCounts()
  const waitingPulls = () => handOff.waitingPulls
  const limiter = new ClientLimiter({ limits, tokens, proxies, log, waitingPulls })
  const { reached } = limiter
  const logAnswer =
    requestLog &&
    answerLog(requestLog, ({ socket, headers }) => ({
      address: proxies.addressOf(socket, headers),
      scheme: proxies.schemeOf(socket, headers),
    }))
  const forwarding =
    cluster === null
      ? null
      : new Forwarding({
          cluster,
          instanceId,
          advertiseUrl,
          basePath,
          proxies,
          limiter,
          requests,
          handOff,
        })
  const slicer = new TimeSlicer()
  const fastPath = new FastPath({
    handOff,
    keyOwner: context.keyOwner,
    isSecure: context.isSecure,
    admissionOf: (rule) => admissionOf(rule, admission),
    limiter,
    problemOf,
    requests,
    slicer,
    proxies,
    logAnswer,
    forwarding,
  })
  const app: FastifyInstance = Fastify({
    // Fastify's logger adds a child logger and two listeners to each request, even when nothing is logged.
    logger: false,
    bodyLimit: DEFAULT_BODY_LIMIT_BYTES,
    requestTimeout: requestMillis,
    // While the node drains, it still answers requests on open connections, with `Connection: close`.
    return503OnClosing: false,
    // The router ignores the first character of a path: it would match `*` as `/`, and `*pull` as `/pull`.
    rewriteUrl: ({ url = '/' }) => (url.startsWith('*') ? `/${url}` : url),
    routerOptions: { maxParamLength: LONGEST_SEGMENT, caseSensitive: true },
    ...serverOptions(tls, {
      maxHeaderSize: HEADERS_LIMIT_BYTES,
      connectionsCheckingInterval: checkMillis,
      headersTimeout: Math.min(requestMillis, HEADERS_MILLIS),
      // Node would refuse the request without an explanation; admission.ts returns a problem document.
      requireHostHeader: false,
    }),
    schemaController: descriptiveSchemas,
    clientErrorHandler: (error, socket) => {
      if (isTooLate(error)) reached.note('request-time', socket.remoteAddress)
      answerClientError(error, socket)
    },
    frameworkErrors: (error, request, reply) => {
      reply.headers(securityHeaders(context.isSecure))
      void answerError(error, request, reply)
    },
  })
  app.setErrorHandler(answerError)
  limitPipelining(app, {
    most: limits.requestsPerConnection,
    slicer,
    note: (address) => reached.note('connection-requests', address),
  })
  forwarding?.admitForwarded(app)
  if (trustedProxies.length > 0) trustProxies(app, proxies)
  if (authProxies.length > 0) signInByProxies(app, new Proxies(authProxies))
  secureAnswers(app, context.isSecure)
  if (logAnswer !== null) logRequests(app, logAnswer)
  acceptJsonBodies(app, {
    limiter,
    slicer,
    callBackShape: callBackShape(limits),
    keepUnlessServed: forwarding?.keepUnlessServed ?? (() => undefined),
  })
  const readScheduler = new ReadScheduler()
  const readInTurn: ReadInTurn = ({ headers, socket }, read) =>
    readScheduler.run(limiter.quotaKeyOf(headers, socket), socket, read)
  const auditRules = { audit, tokens, proxies }
  hookRoutes(app, { admission, limiter, requests, auditRules, readInTurn, forwarding })
  answerUnknownRoutes(app, admission, requests, basePath)
  await describeRoutes(app, { basePath, tableField: context.tableField })
  const streams = new OpenStreams()
  // Their clients connect again, and get the events of the new leader.
  handOff.onLeadershipLost = () => streams.end()
  await app.register(
    async (routes) => {
      await routes.register(async (uncached) => {
        keepOutOfCaches(uncached)
        callBackRoute(uncached, context, reached, slicer)
        pullRoute(uncached, context, fastPath, limiter)
        settleRoute(uncached, context, fastPath, limiter)
        renewRoute(uncached, context)
        instanceRoutes(uncached, context)
        tableRoutes(uncached, context)
        releaseRoutes(uncached, context)
        taskRoutes(uncached, context)
        throughputRoutes(uncached, context)
        manifestRoute(uncached, context, readInTurn)
        controlRoutes(uncached, context)
        settingsRoutes(uncached, context)
        subscriptionRoutes(uncached, context)
        monitoringRoutes(uncached, context, requests, limiter)
        auditRoutes(uncached, context, audit)
        if (cluster !== null) peerRoute(uncached, cluster)
      })
      openapiRoute(routes)
      eventsRoute(routes, context, streams, limiter)
      pageRoutes(routes, readPageFiles())
    },
    { prefix: basePath },
  )
  allowHalfOpen(app.server)
  paceReading(app.server, context.isSecure, { mostUnderWay: limits.requestsPerConnection, slicer })
  // Even when switched off, the fast path holds each connection until its first bytes arrive. Node's server
  // counts a connection without a request as busy, and closing would wait for it.
  if (!isFastPathOn) fastPath.disable()
  fastPath.interceptConnections(app.server)
  if (tls !== null) refusePlainHttp(app)
  // Runs first, for connections of the fast path and of Node's server alike.
  limiter.connections.interceptConnections(app.server)
  app.addHook('onClose', async () => limiter.stop())
  answerExpectHeader(app, Math.max(context.callBackLimitBytes, DEFAULT_BODY_LIMIT_BYTES))
  admission.tokens?.onReload(() => fastPath.forgetHeads())
  auditReloads(audit, {
    'tokens file': admission.tokens,
    'subscriptions file': context.webhooks.file,
    certificate: tls,
  })
  if (tls !== null) serveTls(app, tls)
  // Must run before the `preClose` hook that waits for open connections.
  app.addHook('preClose', async () => streams.end())
  closeGracefully(app, fastPath, { handOff, limiter, cluster }, closeMillis)
  return app
}

/**
 * Descriptors have five fields; the limits leave space for additional fields that are ignored. A descriptor
 * of the longest names, all characters escaped, has 45 KiB.
 */
export function callBackShape({ callBackPartitions }: Pick<ClientLimits, 'callBackPartitions'>): ShapeLimits {
  return {
    elements: callBackPartitions,
    values: Math.max(1_000_000, 10 * callBackPartitions),
    elementBytes: 64 * 1024,
  }
}
