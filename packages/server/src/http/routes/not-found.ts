import { didYouMean } from '@baton/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type AdmissionOptions, hostRefusal } from '../admission/admission.ts'
import { sendProblem } from '../answers/problems.ts'
import { countingStrays, type RequestCounts } from '../observability/answered-requests.ts'

/** Paths may contain very long task ids; longer hints are omitted. */
const LONGEST_HINT = 200

/** The routes with the same number of segments and their parameters in the same positions. */
interface Shape {
  readonly parameters: readonly boolean[]
  /** The routes by their fixed segments, joined; a list of these texts; the same in lower case. */
  readonly byText: Map<string, readonly string[]>
  readonly texts: string[]
  readonly byLowerCase: Map<string, readonly string[]>
}

/** Routes without parameters by what is left of them without one of their segments. */
interface Shortened {
  readonly byText: Map<string, readonly string[]>
  readonly texts: string[]
}

/**
 * The paths of all routes, to suggest one when a path differs in a slash, in case or by a typo. Routes are
 * grouped when they are added, so that an unknown path is cheap, however many there are of them.
 */
class KnownPaths {
  /** By number of segments. */
  readonly #shapes = new Map<number, Shape[]>()
  readonly #shortened = new Map<number, Shortened>()

  /** `url` is the URL of a route, with `:name` for parameters. */
  add(url: string): void {
    if (url.includes('*')) return
    const route = segmentsOf(url)
    const shape = this.#shapeOf(route.map((part) => part.startsWith(':')))
    const text = fixedOf(shape, route)
    // A route is added once per method.
    if (shape.byText.has(text)) return
    shape.byText.set(text, route)
    shape.texts.push(text)
    shape.byLowerCase.set(text.toLowerCase(), route)
    if (!hasParameters(shape)) this.#addShortened(route)
  }

  #shapeOf(parameters: readonly boolean[]): Shape {
    const shapes = this.#shapes.get(parameters.length) ?? []
    this.#shapes.set(parameters.length, shapes)
    const known = shapes.find((shape) => shape.parameters.every((is, at) => is === parameters[at]))
    if (known !== undefined) return known
    const shape: Shape = { parameters, byText: new Map(), texts: [], byLowerCase: new Map() }
    shapes.push(shape)
    return shape
  }

  #addShortened(route: readonly string[]): void {
    const shortened = this.#shortened.get(route.length - 1)
    const { byText, texts }: Shortened = shortened ?? { byText: new Map(), texts: [] }
    this.#shortened.set(route.length - 1, { byText, texts })
    for (const at of route.keys()) {
      const text = route.toSpliced(at, 1).join('/')
      byText.set(text, route)
      texts.push(text)
    }
  }

  /** The known path that was most likely intended. */
  like(path: string): string | undefined {
    // Longer paths never produce a hint, and comparing them is expensive.
    if (path.length > 2 * LONGEST_HINT) return undefined
    const given = segmentsOf(path)
    const meant = this.#alike(given) ?? this.#near(given) ?? this.#lackingSegment(given)
    const url = meant === undefined ? undefined : `/${meant.join('/')}`
    return url === undefined || url.length > LONGEST_HINT ? undefined : url
  }

  /** A route that differs only in slashes and case. */
  #alike(given: readonly string[]): readonly string[] | undefined {
    // In a path with a task id, two slashes mean a missing task id, not a superfluous slash.
    const packed = given.filter((segment) => segment !== '')
    const fixed = this.#fitting(packed).find((shape) => !hasParameters(shape))
    const route = fixed?.byLowerCase.get(packed.join('/').toLowerCase())
    if (route !== undefined) return route
    for (const shape of this.#fitting(given)) {
      const other = shape.byLowerCase.get(fixedOf(shape, given).toLowerCase())
      if (other !== undefined) return filled(shape, other, given)
    }
    return undefined
  }

  /** A route that differs by a typo in a fixed segment. */
  #near(given: readonly string[]): readonly string[] | undefined {
    for (const shape of this.#fitting(given)) {
      const route = shape.byText.get(didYouMean(fixedOf(shape, given), shape.texts) ?? '')
      if (route !== undefined) return filled(shape, route, given)
    }
    return undefined
  }

  /** A route with one more segment, such as `/test/instance-status` for `/instance-status`. */
  #lackingSegment(given: readonly string[]): readonly string[] | undefined {
    const shortened = this.#shortened.get(given.length)
    return shortened?.byText.get(didYouMean(given.join('/'), shortened.texts) ?? '')
  }

  /** The shapes with this number of segments for which no parameter is empty. */
  #fitting(given: readonly string[]): readonly Shape[] {
    const shapes = this.#shapes.get(given.length) ?? []
    return shapes.filter(({ parameters }) => parameters.every((is, at) => !is || given[at] !== ''))
  }
}

/** The segments of a path, without leading and trailing slashes. */
function segmentsOf(path: string): readonly string[] {
  const inner = path.replace(/^\/+/, '').replace(/\/+$/, '')
  return inner === '' ? [] : inner.split('/')
}

function hasParameters({ parameters }: Shape): boolean {
  return parameters.includes(true)
}

/** The segments at the positions that are not parameters, joined. */
function fixedOf({ parameters }: Shape, segments: readonly string[]): string {
  return segments.filter((_, at) => parameters[at] === false).join('/')
}

/** The route with the parameters of a path. */
function filled({ parameters }: Shape, route: readonly string[], path: readonly string[]): readonly string[] {
  return route.map((part, at) => (parameters[at] === true ? (path[at] ?? '') : part))
}

/** Common names of health probes that do not distinguish liveness from readiness. */
const HEALTH = new Set(['/health', '/healthz', '/healthcheck'])

/**
 * Answers requests for unknown paths and for methods that a path does not support. `basePath` is empty, or
 * has no trailing slash.
 */
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
