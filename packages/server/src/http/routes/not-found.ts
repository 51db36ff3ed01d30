import { didYouMean } from '@baton/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type AdmissionOptions, hostRefusal } from '../admission/admission.ts'
import { sendProblem } from '../answers/problems.ts'
import { countingStrays, type RequestCounts } from '../observability/answered-requests.ts'

/** Paths may contain very long task ids; longer hints are omitted. */
const LONGEST_HINT = 200

/** Routes with parameters in the same positions. */
interface Shape {
  readonly isParameter: readonly boolean[]
  /** The segments of each route, by those that are no parameters. */
  readonly routes: Map<string, readonly string[]>
}

/** The paths of all routes, to suggest one when a path differs in a slash, in case or by a typo. */
class KnownPaths {
  readonly #shapes = new Map<string, Shape>()

  /** `url` is the URL of a route, with `:name` for parameters. */
  add(url: string): void {
    if (url.includes('*')) return
    const route = segmentsOf(url)
    const isParameter = route.map((part) => part.startsWith(':'))
    const shape = this.#shapes.get(isParameter.join()) ?? { isParameter, routes: new Map() }
    this.#shapes.set(isParameter.join(), shape)
    shape.routes.set(fixedOf(shape, route), route)
  }

  /** The known path that was most likely intended. */
  like(path: string): string | undefined {
    // Longer paths never produce a hint, and comparing them is expensive.
    if (path.length > 2 * LONGEST_HINT) return undefined
    const given = segmentsOf(path)
    // In a path with a task id, two slashes mean a missing task id, not a superfluous slash.
    const packed = given.filter((segment) => segment !== '')
    const withoutSlashes =
      packed.length === given.length
        ? undefined
        : closest(packed.join('/'), this.#withoutParameters(packed.length))
    const meant = withoutSlashes ?? this.#near(given) ?? this.#lackingSegment(given)
    const url = meant === undefined ? undefined : `/${meant.join('/')}`
    return url === undefined || url.length > LONGEST_HINT ? undefined : url
  }

  /** A route that differs by a typo in the segments that are no parameters. */
  #near(given: readonly string[]): readonly string[] | undefined {
    for (const shape of this.#shapes.values()) {
      const { isParameter, routes } = shape
      if (isParameter.length !== given.length || given.some((part, at) => part === '' && isParameter[at]))
        continue
      const route = closest(fixedOf(shape, given), routes)
      if (route !== undefined) return route.map((part, at) => (isParameter[at] ? (given[at] ?? '') : part))
    }
    return undefined
  }

  /** A route with one more segment, such as `/test/instance-status` for `/instance-status`. */
  #lackingSegment(given: readonly string[]): readonly string[] | undefined {
    const shortened = new Map(
      [...this.#withoutParameters(given.length + 1).values()].flatMap((route) =>
        route.map((_, at) => [route.toSpliced(at, 1).join('/'), route] as const),
      ),
    )
    return closest(given.join('/'), shortened)
  }

  #withoutParameters(segments: number): Shape['routes'] {
    return this.#shapes.get(Array(segments).fill(false).join())?.routes ?? new Map()
  }
}

function closest(text: string, routes: Shape['routes']): readonly string[] | undefined {
  const meant = didYouMean(text, [...routes.keys()])
  return meant === undefined ? undefined : routes.get(meant)
}

/** The segments of a path, without leading and trailing slashes. */
function segmentsOf(path: string): readonly string[] {
  const inner = path.replace(/^\/+/, '').replace(/\/+$/, '')
  return inner === '' ? [] : inner.split('/')
}

const fixedOf = ({ isParameter }: Pick<Shape, 'isParameter'>, segments: readonly string[]): string =>
  segments.filter((_, at) => isParameter[at] === false).join('/')

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
  const onRequest = [countingStrays(requests), answer]
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
