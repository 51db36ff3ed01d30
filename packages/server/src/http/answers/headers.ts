import type { FastifyInstance } from 'fastify'

export const JSON_TYPE = 'application/json; charset=utf-8'

/** The security headers of all responses except the page, which has its own, wider policy. */
const plainHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
}
/** Over TLS, browsers use only HTTPS for this host for one year. */
const headersOverTls = { ...plainHeaders, 'strict-transport-security': 'max-age=31536000' }

export const securityHeaders = (isSecure: boolean): Readonly<Record<string, string>> =>
  isSecure ? headersOverTls : plainHeaders

/** Must run before other hooks of Fastify, so that their refusals have the headers too. */
export function secureAnswers(app: FastifyInstance, isSecure: boolean): void {
  const headers = securityHeaders(isSecure)
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(headers)
    done()
  })
}

/** Responses describe the current state, so they must not be cached. */
export function keepOutOfCaches(routes: FastifyInstance): void {
  routes.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'no-store')
    done()
  })
}

/** Names and values, alternating. */
export type AnswerHeaders = readonly string[]

/** The headers of every pull and settle response. */
const headersOf = (isSecure: boolean): AnswerHeaders => [
  ...['content-type', JSON_TYPE, 'cache-control', 'no-store'],
  ...Object.entries(securityHeaders(isSecure)).flat(),
]
const inClear = headersOf(false)
const overTls = headersOf(true)

export const commonHeaders = (isSecure: boolean): AnswerHeaders => (isSecure ? overTls : inClear)
