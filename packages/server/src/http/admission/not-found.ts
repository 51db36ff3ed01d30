import { didYouMean } from '@baton/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sendProblem } from '../answers/problems.ts'
import { countingStrays, type RequestCounts } from '../requests/request-counts.ts'
import { type AdmissionOptions, hostRefusal } from './admission.ts'

/** A task id may be thousands of characters long, and a hint is read by people. */
const LONGEST_HINT = 200

/** The paths of the routes, for those who miss one by a slash, a capital letter or a slip. */
class KnownPaths {
  readonly #patterns = new Map<string, readonly string[]>()

  /** `url` as a route has it, with `:name` for what varies. */
  add(url: string): void {
    if (!url.includes('*')) this.#patterns.set(url, segmentsOf(url))
  }

  /** The known path that this one most likely stands for. */
  like(path: string): string | undefined {
    // No hint would come of longer ones, and 32,000 slashes took two seconds to look through.
    if (path.length > 2 * LONGEST_HINT) return undefined
    const given = segmentsOf(path)
    const meant = this.#alike(given) ?? this.#near(given) ?? this.#lackingSegment(given)
    const url = meant === undefined ? undefined : `/${meant.join('/')}`
    return url === undefined || url.length > LONGEST_HINT ? undefined : url
  }

  /** Differs by nothing but slashes and the case of letters. */
  #alike(given: readonly string[]): readonly string[] | undefined {
    for (const pattern of this.#patterns.values()) {
      // Within a path with a task id two slashes are a task id that is missing, not a slash too many.
      const segments = pattern.some(isVariable) ? given : given.filter((segment) => segment !== '')
      if (fits(pattern, segments) && same(fixedOf(pattern, pattern), fixedOf(pattern, segments)))
        return filled(pattern, segments)
    }
    return undefined
  }

  /** Differs as a misspelt field does. What varies is what it is, so those that vary in the same places are held together. */
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

  /** As `/instance-status` is for `/test/instance-status`. */
  #lackingSegment(given: readonly string[]): readonly string[] | undefined {
    const byText = new Map<string, readonly string[]>()
    for (const pattern of this.#patterns.values()) {
      if (pattern.length !== given.length + 1 || pattern.some(isVariable)) continue
      for (const at of pattern.keys()) byText.set(pattern.toSpliced(at, 1).join('/'), pattern)
    }
    return byText.get(didYouMean(given.join('/'), [...byText.keys()]) ?? '')
  }
}

/** Without the slashes at both ends. */
function segmentsOf(path: string): readonly string[] {
  const inner = path.replace(/^\/+/, '').replace(/\/+$/, '')
  return inner === '' ? [] : inner.split('/')
}

function isVariable(part: string): boolean {
  return part.startsWith(':')
}

/** As many segments, and something wherever the pattern leaves open what. */
function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((part, at) => !isVariable(part) || segments[at] !== '')
  )
}

/** Those of the segments that stand where the pattern leaves nothing open, as one text. */
function fixedOf(pattern: readonly string[], segments: readonly string[]): string {
  return segments.filter((_, at) => !isVariable(pattern[at] ?? '')).join('/')
}

function filled(pattern: readonly string[], segments: readonly string[]): readonly string[] {
  return pattern.map((part, at) => (isVariable(part) ? (segments[at] ?? '') : part))
}

function same(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}

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
