import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'

/**
 * A client that asks before it sends a large body is told to go on only if the body has a chance. Other expectations
 * are passed over, which HTTP allows; Node would refuse them without a word.
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
