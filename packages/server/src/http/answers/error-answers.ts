import { randomUUID } from 'node:crypto'
import type { ProblemCode } from '@baton/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { StoreUnavailable } from '../../handoff/store.ts'
import type { Service } from '../service.ts'
import { RequestProblem, sendProblem, type UnwrittenProblem } from './problems.ts'

export const UNEXPECTED = 'something went wrong inside the service; its log has the details'

/** Problems for the errors that Fastify raises, by error code. */
const frameworkFaults: Readonly<Record<string, { code: ProblemCode; detail: string }>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: 'unsupported_media_type',
    detail: 'the body must be sent with Content-Type: application/json',
  },
  FST_ERR_BAD_URL: { code: 'bad_request', detail: 'the path is not validly percent-encoded UTF-8' },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'bad_request', detail: 'a segment of the path is too long' },
}

/** The request that failed, for the log. */
interface Requested {
  readonly method?: string | undefined
  readonly url?: string | undefined
}

export type Refuse = (error: unknown, asked: Requested) => UnwrittenProblem

/** Converts errors to problems. All errors of requests pass through here. */
export function refusals({ log }: Pick<Service, 'log'>): Refuse {
  return (error, { method, url }) => {
    if (error instanceof RequestProblem) return error
    if (error instanceof StoreUnavailable) return { code: error.code, detail: error.message }
    const fault = frameworkFaults[codeOf(error)]
    if (fault !== undefined) return fault
    if (isClientFault(error))
      return { code: 'bad_request', detail: 'the request could not be read to its end' }
    const instance = `urn:uuid:${randomUUID()}`
    log.error({ err: error, instance, method, url }, 'a request failed unexpectedly')
    return {
      code: 'internal',
      detail: UNEXPECTED,
      options: { extra: { instance } },
    }
  }
}

/** Fastify's error handler. */
export function errorAnswers({ handOff }: Pick<Service, 'handOff'>, refuse: Refuse) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    // Fastify closes the connection after any error in a body. If the body was read completely, that only
    // forces the client to reconnect. If it was not, discarding the rest lets the client read the response.
    if (reply.hasHeader('connection') && !handOff.isDraining) reply.removeHeader('connection')
    if (frameworkFaults[codeOf(error)] !== undefined) request.raw.resume()
    return sendProblem(reply, refuse(error, request))
  }
}

export function tooLarge(limitBytes: number, isCallBack: boolean): string {
  return isCallBack ? callBackTooLarge(limitBytes) : otherTooLarge(limitBytes)
}

const inMebibytes = (bytes: number) => `${Number((bytes / 2 ** 20).toFixed(3))} MiB`

const otherTooLarge = (limitBytes: number) =>
  `the body is larger than ${inMebibytes(limitBytes)}, the most that this takes`

/** Only the limit of call-backs can be configured, so only this message names the setting. */
export function callBackTooLarge(limitBytes: number): string {
  const limit = inMebibytes(limitBytes)
  return `the body is larger than ${limit}, the most that a call-back may have here; call the task back in several arrays, or raise the limit with --body-limit-mb`
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | null)?.code)
}

/**
 * Whether the client caused the error, for example by closing the connection while it sent the body. Fastify
 * sets a 4xx `statusCode` on these errors.
 */
function isClientFault(error: unknown): boolean {
  const status = (error as { statusCode?: unknown } | null)?.statusCode
  return typeof status === 'number' && status >= 400 && status < 500
}
