import { didYouMean } from '@baton/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type AdmissionOptions, hostRefusal } from '../admission/admission.ts'
import { sendProblem } from '../answers/problems.ts'
import { counting, type RequestCounts } from '../observability/answered-requests.ts'

/** Paths may contain very long task ids; longer hints are omitted. */
const LONGEST_HINT = 200

/** The paths of all routes, to suggest one when a path differs in a slash, in case or by a typo. */
class KnownPaths {
  readonly #routes: (readonly string[])[] = []

  /** `url` is the URL of a route, with `:name` for parameters. */
  add(url: string): void {
    if (!url.includes('*')) this.#routes.push(segmentsOf(url))
  }

  /** The known path that was most likely intended. */
  like(path: string): string | undefined {
    // Longer paths never produce a hint, and comparing them is expensive.
    if (path.length > 2 * LONGEST_HINT) return undefined
    const given = segmentsOf(path)
    // In a path with a task id, two slashes mean a missing task id, not a superfluous slash.
    const withoutSlashes = given.filter((segment) => segment !== '')
    const url =
      didYouMean(urlOf(withoutSlashes), this.#withoutParameters(withoutSlashes.length).map(urlOf)) ??
      didYouMean(urlOf(given), this.#filledIn(given)) ??
      this.#lackingSegment(given)
    return url === undefined || url.length > LONGEST_HINT ? undefined : url
  }

  /** The routes with as many segments; their parameters have the values of the path. */
  #filledIn(given: readonly string[]): readonly string[] {
    return this.#routes
      .filter((route) => route.length === given.length)
      .map((route) => route.map((part, at) => (isParameter(part) ? (given[at] ?? '') : part)))
      .filter((filled) => !filled.includes(''))
      .map(urlOf)
  }

  /** A route with one more segment, such as `/test/instance-status` for `/instance-status`. */
  #lackingSegment(given: readonly string[]): string | undefined {
    const shortened = new Map(
      this.#withoutParameters(given.length + 1).flatMap((route) =>
        route.map((_, at) => [urlOf(route.toSpliced(at, 1)), urlOf(route)] as const),
      ),
    )
    return shortened.get(didYouMean(urlOf(given), [...shortened.keys()]) ?? '')
  }

  #withoutParameters(segments: number): readonly (readonly string[])[] {
    return this.#routes.filter((route) => route.length === segments && !route.some(isParameter))
  }
}

const isParameter = (segment: string): boolean => segment.startsWith(':')

const urlOf = (segments: readonly string[]): string => `/${segments.join('/')}`

/** The segments of a path, without leading and trailing slashes. */
function segmentsOf(path: string): readonly string[] {
  const inner = path.replace(/^\/+/, '').replace(/\/+$/, '')
  return inner === '' ? [] : inner.split('/')
}

/** Common names of health probes that do not distinguish liveness from readiness. */
const HEALTH = new Set(['/health', '/healthz', '/healthcheck'])

/** Answers unknown paths, and unsupported methods. `basePath` has no trailing slash. */
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
    const detail = `this route supports ${methods}`
    sendProblem(reply, { code: 'method_not_allowed', detail, options: { headers: { allow: methods } } })
  }
  // A hook runs before the body is read, so a wrong path is reported whatever the body is.
  const onRequest = [counting(requests.ofNone), answer]
  app.setNotFoundHandler({ onRequest, preHandler: [] } as { preHandler: [] }, answer)
}

function nothingAt(path: string, known: KnownPaths, basePath: string): string {
  const isBelow = `${path}/`.startsWith(`${basePath}/`)
  const below = isBelow ? path.slice(basePath.length) : path
  const meant = HEALTH.has(below)
    ? `${basePath}/livez or ${basePath}/readyz`
    : (known.like(path) ?? (isBelow ? undefined : known.like(`${basePath}${path}`)))
  const mount = isBelow ? '' : `: the base path of the service is ${basePath}`
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`
  return `there is no route with this path${mount}${hint}`
}
