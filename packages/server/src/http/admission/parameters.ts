import type { IncomingMessage } from 'node:http'
import { didYouMean } from '@baton/protocol'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { RequestProblem } from '../answers/problems.ts'

/**
 * What can be wrong with the parameters of a request whatever they mean, for every route and behind admission. The
 * fast path serves nothing that this would refuse: neither a query nor a header that is sent twice.
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

/** Undefined for a route that has none: what is misspelt there was never meant for it. */
function parametersOf({ schema }: RouteOptions): readonly string[] | undefined {
  const query = schema?.querystring as { properties?: object } | undefined
  return query?.properties === undefined ? undefined : Object.keys(query.properties)
}

/**
 * A misspelt parameter that is passed over would turn a question about something into one about everything. What is like
 * none of ours was never meant for us.
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

/** Node joins what is sent twice, and the joint text may well be a name. */
function senderFault({ headers, rawHeaders }: IncomingMessage): RequestProblem | undefined {
  if (!String(headers['x-instance-id'] ?? '').includes(',')) return undefined
  const names = rawHeaders.filter((_, at) => at % 2 === 0)
  if (names.filter((name) => name.toLowerCase() === 'x-instance-id').length < 2) return undefined
  return new RequestProblem('parameter_invalid', 'X-Instance-Id must be given once')
}
