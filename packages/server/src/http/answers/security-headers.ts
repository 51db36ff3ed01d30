import type { FastifyInstance } from 'fastify'

/**
 * What every answer tells browsers: to take it for nothing but what it says it is, to run, load and frame nothing of it, and
 * to keep it from pages of other sites. The page has a wider policy of its own.
 */
const leaseState = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
}
/** Over TLS: browsers ask this host for nothing in clear for a year. */
const standingOverTls = { ...leaseState, 'strict-transport-security': 'max-age=31536000' }

export const securityHeaders = (isSecure: boolean): Readonly<Record<string, string>> =>
  isSecure ? standingOverTls : leaseState

/** For all that Fastify answers. Before other hooks: what they refuse is an answer, too. */
export function secureAnswers(app: FastifyInstance, isSecure: boolean): void {
  const headers = securityHeaders(isSecure)
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(headers)
    done()
  })
}
