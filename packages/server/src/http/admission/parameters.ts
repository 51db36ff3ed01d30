import type { IncomingMessage } from 'node:http'
import { didYouMean } from '@baton/protocol'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { RequestProblem } from '../answers/problems.ts'

/**
 * Checks that apply to the parameters of every route, after admission. The fast path does not need them: it
 * parses queries strictly, and does not serve requests with a repeated header.
 */
export function checkParameters(app: FastifyInstance): void {
  app.addHook('onRoute', (route: RouteOptions) => {
    if (route.config?.access === 'probe') return
    const known = parametersOf(route)
    const check = (request: FastifyRequest, _reply: unknown, done: (fault?: Error) => void): void => {
      done(senderFault(request.raw) ?? (known === undefined ? undefined : queryFault(request, known)))
    }
    const others = route.onRequest === undefined ? [] : [route.onRequest].flat()
    route.onRequest = [...others, check]
  })
}

/** The query parameters of a route; undefined when it has none, and then its query is not checked. */
function parametersOf({ schema }: RouteOptions): readonly string[] | undefined {
  const query = schema?.querystring as { properties?: object } | undefined
  return query?.properties === undefined ? undefined : Object.keys(query.properties)
}

/**
 * Ignoring a misspelt filter would return everything instead of a selection. Parameters that resemble none of
 * the route's are ignored: they are probably meant for something else.
 */
function queryFault({ url, query }: FastifyRequest, known: readonly string[]): RequestProblem | undefined {
  const at = url.indexOf('?')
  if (at === -1) return undefined
  if (!isEncoded(url.slice(at + 1))) {
    return new RequestProblem('bad_request', 'the query is not validly percent-encoded UTF-8')
  }
  for (const name of Object.keys(query as object)) {
    const meant = known.includes(name) ? undefined : didYouMean(name, known)
    if (meant !== undefined)
      return new RequestProblem(
        'parameter_invalid',
        `${JSON.stringify(name)} is not a query parameter here; did you mean ${meant}?`,
      )
  }
  return undefined
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** Node joins repeated headers with a comma, and the result may be a valid name. */
function senderFault({ headers, rawHeaders }: IncomingMessage): RequestProblem | undefined {
  if (!String(headers['x-instance-id'] ?? '').includes(',')) return undefined
  const names = rawHeaders.filter((_, at) => at % 2 === 0)
  if (names.filter((name) => name.toLowerCase() === 'x-instance-id').length < 2) return undefined
  return new RequestProblem('parameter_invalid', 'X-Instance-Id must be given once')
}
