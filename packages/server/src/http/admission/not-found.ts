import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sendProblem } from '../answers/problems.ts'
import { countingStrays, type RequestCounts } from '../requests/request-counts.ts'
import { type AdmissionOptions, hostRefusal } from './admission.ts'
import { KnownPaths } from './known-paths.ts'

/** What others call the two probes: one word for both questions. */
const HEALTH = new Set(['/health', '/healthz', '/healthcheck'])

/** Paths without a route, and routes without the method. `basePath` is empty, or has no slash at its end. */
export function answerUnknownRoutes(
  app: FastifyInstance,
  { hosts, tokens }: AdmissionOptions,
  requests: RequestCounts,
  basePath: string,
): void {
  const known = new KnownPaths()
  app.addHook('onRoute', ({ url }) => known.add(url))
  const answer = (request: FastifyRequest, reply: FastifyReply): void => {
    const refusal = tokens === null ? hostRefusal(request.raw, hosts) : undefined
    if (refusal !== undefined) {
      sendProblem(reply, refusal)
      return
    }
    const path = request.url.split('?', 1)[0] ?? '/'
    const allowed = app.supportedMethods.filter((method) => app.findRoute({ method, url: path }) !== null)
    if (allowed.length === 0) {
      sendProblem(reply, { code: 'route_unknown', detail: nothingAt(path, known, basePath) })
      return
    }
    const methods = allowed.join(', ')
    const detail = `this path takes ${methods}`
    sendProblem(reply, { code: 'method_not_allowed', detail, options: { headers: { allow: methods } } })
  }
  // As a hook it runs before the body is read: a wrong path is answered as such, whatever is sent to it.
  const onRequest = [countingStrays(requests), answer]
  app.setNotFoundHandler({ onRequest, preHandler: [] } as { preHandler: [] }, answer)
}

function nothingAt(path: string, known: KnownPaths, basePath: string): string {
  const isBelow = `${path}/`.startsWith(`${basePath}/`)
  const below = isBelow ? path.slice(basePath.length) : path
  const meant = HEALTH.has(below)
    ? `${basePath}/livez or ${basePath}/readyz`
    : (known.like(path) ?? (isBelow ? undefined : known.like(`${basePath}${path}`)))
  const mount = isBelow ? '' : `: the service is mounted under ${basePath}`
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`
  return `there is nothing at this path${mount}${hint}`
}
