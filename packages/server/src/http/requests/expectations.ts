import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'

/**
 * Sends 100 Continue only if the announced body is within the largest limit. Other expectations are ignored,
 * as HTTP allows; Node would refuse them without an explanation.
 */
export function answerExpectHeader(app: FastifyInstance, largestBodyBytes: number): void {
  app.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    const announced = Number(request.headers['content-length'] ?? 0)
    if (announced <= largestBodyBytes) response.writeContinue()
    app.routing(request, response)
  })
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    app.routing(request, response)
  })
}
