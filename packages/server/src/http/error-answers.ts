import { randomUUID } from 'node:crypto'
import type { ProblemCode } from '@baton/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { StoreUnavailable } from '../handoff/store.ts'
import { RequestProblem, sendProblem } from './problems.ts'
import type { Service } from './service.ts'

/** What Fastify itself finds wrong with a request, by its error code. */
const frameworkFaults: Readonly<Record<string, { code: ProblemCode; detail: string }>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: {
    code: 'body_too_large',
    detail: 'the body is larger than the service accepts here',
  },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: 'unsupported_media_type',
    detail: 'the body must be sent with Content-Type: application/json',
  },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: 'bad_request',
    detail: 'the body is shorter or longer than its Content-Length says',
  },
  FST_ERR_BAD_URL: { code: 'bad_request', detail: 'the path is not validly percent-encoded UTF-8' },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'bad_request', detail: 'a segment of the path is too long' },
}

/** The one place where an error becomes an answer. */
export function errorAnswers({ handOff, log }: Pick<Service, 'handOff' | 'log'>) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const fault = frameworkFaults[codeOf(error)]
    // Fastify ends the connection after any fault in a body. Where the whole body was read that only costs the
    // client a new one; where it was not, discarding the rest lets the client read the answer first.
    if (reply.hasHeader('connection') && !handOff.isDraining) reply.removeHeader('connection')
    if (error instanceof RequestProblem) return sendProblem(reply, error.code, error.message, error.options)
    if (error instanceof StoreUnavailable) return sendProblem(reply, error.code, error.message)
    if (fault !== undefined) {
      request.raw.resume()
      return sendProblem(reply, fault.code, fault.detail)
    }
    if (isClientFault(error))
      return sendProblem(reply, 'bad_request', 'the request could not be read to its end')
    const instance = `urn:uuid:${randomUUID()}`
    log.error(
      { err: error, instance, method: request.method, url: request.url },
      'a request failed unexpectedly',
    )
    return sendProblem(
      reply,
      'internal',
      'something went wrong inside the service; its log has the details',
      {
        extra: { instance },
      },
    )
  }
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | null)?.code)
}

/** The connection broke while the body arrived, or the like: Fastify marks these with a status of its own. */
function isClientFault(error: unknown): boolean {
  const status = (error as { statusCode?: unknown } | null)?.statusCode
  return typeof status === 'number' && status >= 400 && status < 500
}
