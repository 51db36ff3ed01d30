import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Log } from '../../handoff/log.ts'

export type RequestLog = Log

/** A line for each request, where somebody asked for it: the hook alone costs what a tenth of a pull costs. */
export function logRequests(
  app: FastifyInstance,
  log: RequestLog,
  originOf: (request: FastifyRequest['raw']) => object,
): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { method, url, headers } = request.raw
    const fields = { method, url, status: reply.statusCode, millis: Math.round(reply.elapsedTime * 10) / 10 }
    log.debug({ ...fields, ...originOf(request.raw), instance: headers['x-instance-id'] }, 'answered')
    done()
  })
}
