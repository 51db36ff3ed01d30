import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sendProblem } from '../answers/problems.ts'
import { countingStrays, type RequestCounts } from '../requests/request-counts.ts'
import { type AdmissionOptions, hostRefusal } from './admission.ts'
import { KnownPaths } from './known-paths.ts'

/** Paths without a route, and routes without the method. */
export function answerUnknownRoutes(
  app: FastifyInstance,
  { hosts, tokens }: AdmissionOptions,
  requests: RequestCounts,
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
      const meant = known.alike(path)
      const hint = meant === undefined ? '' : `; did you mean ${meant}?`
      sendProblem(reply, { code: 'route_unknown', detail: `there is nothing at this path${hint}` })
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
