import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Log } from '../../handoff/log.ts'

export type RequestLog = Log

type Answered = Pick<IncomingMessage, 'method' | 'url' | 'headers' | 'socket'>

/** Logs a request after it was answered. */
export type LogAnswer = (request: Answered, status: number, millis: number) => void

/** `originOf` returns the address of the client and the scheme it used. */
export function answerLog(log: RequestLog, originOf: (request: Answered) => object): LogAnswer {
  return (request, status, millis) => {
    const { method, url, headers } = request
    const fields = { method, url, status, millis: Math.round(millis * 10) / 10, ...originOf(request) }
    log.debug({ ...fields, instance: headers['x-instance-id'] }, 'answered')
  }
}

/** Logs each request. The hook has a cost, so it is only added when requests are logged. */
export function logRequests(app: FastifyInstance, logAnswer: LogAnswer): void {
  app.addHook('onResponse', (request, reply, done) => {
    logAnswer(request.raw, reply.statusCode, reply.elapsedTime)
    done()
  })
}
