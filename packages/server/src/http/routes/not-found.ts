import { didYouMean } from '@baton/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type AdmissionOptions, hostRefusal } from '../admission/admission.ts'
import { sendProblem } from '../answers/problems.ts'
import { countingStrays, type RequestCounts } from '../observability/answered-requests.ts'

/** Paths may contain very long task ids; longer hints are omitted. */
const LONGEST_HINT = 200

/** The paths of all routes, to suggest one when a path differs in a slash, in case or by a typo. */
class KnownPaths {
  readonly #patterns = new Map<string, readonly string[]>()

  /** `url` is the URL of a route, with `:name` for parameters. */
  add(url: string): void {
    if (!url.includes('*')) this.#patterns.set(url, segmentsOf(url))
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
    for (const pattern of this.#patterns.values()) {
      // In a path with a task id, two slashes mean a missing task id, not a superfluous slash.
      const segments = pattern.some(isVariable) ? given : given.filter((segment) => segment !== '')
      if (fits(pattern, segments) && same(fixedOf(pattern, pattern), fixedOf(pattern, segments)))
        return filled(pattern, segments)
    }
    return undefined
  }

  /**
   * A route that differs by a typo in a fixed segment. Routes with parameters in the same positions are
   * compared together.
   */
  #near(given: readonly string[]): readonly string[] | undefined {
    const fitting = [...this.#patterns.values()].filter((pattern) => fits(pattern, given))
    const shapes = Map.groupBy(fitting, (pattern) => pattern.map(isVariable).join())
    for (const alternatives of shapes.values()) {
      const byText = new Map(alternatives.map((pattern) => [fixedOf(pattern, pattern), pattern]))
      const [first = []] = alternatives
      const pattern = byText.get(didYouMean(fixedOf(first, given), [...byText.keys()]) ?? '')
      if (pattern !== undefined) return filled(pattern, given)
    }
    return undefined
  }

  /** A route with one more segment, such as `/test/instance-status` for `/instance-status`. */
  #lackingSegment(given: readonly string[]): readonly string[] | undefined {
    const byText = new Map<string, readonly string[]>()
    for (const pattern of this.#patterns.values()) {
      if (pattern.length !== given.length + 1 || pattern.some(isVariable)) continue
      for (const at of pattern.keys()) byText.set(pattern.toSpliced(at, 1).join('/'), pattern)
    }
    return byText.get(didYouMean(given.join('/'), [...byText.keys()]) ?? '')
  }
}

/** The segments of a path, without leading and trailing slashes. */
function segmentsOf(path: string): readonly string[] {
  const inner = path.replace(/^\/+/, '').replace(/\/+$/, '')
  return inner === '' ? [] : inner.split('/')
}

function isVariable(part: string): boolean {
  return part.startsWith(':')
}

/** Whether the number of segments matches and no parameter is empty. */
function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((part, at) => !isVariable(part) || segments[at] !== '')
  )
}

/** The segments at the positions of the pattern that are not parameters, joined. */
function fixedOf(pattern: readonly string[], segments: readonly string[]): string {
  return segments.filter((_, at) => !isVariable(pattern[at] ?? '')).join('/')
}

function filled(pattern: readonly string[], segments: readonly string[]): readonly string[] {
  return pattern.map((part, at) => (isVariable(part) ? (segments[at] ?? '') : part))
}

function same(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
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
