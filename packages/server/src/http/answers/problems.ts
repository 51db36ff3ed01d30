import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import {
  type CheckFailure,
  listedViolations,
  PROBLEM_MEDIA_TYPE,
  type ProblemCode,
  type ProblemExtra,
  problem,
} from '@baton/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { HandOff } from '../../handoff/hand-off.ts'
import type { Log } from '../../handoff/log.ts'
import { StoreUnavailable } from '../../handoff/store.ts'
import { answerNotServed, NotServed } from '../forwarded-client.ts'

interface ProblemOptions {
  readonly extra?: ProblemExtra
  readonly headers?: Readonly<Record<string, string>>
}

/** Why a request is refused, before it is converted to an HTTP response. */
export interface Problem {
  readonly code: ProblemCode
  readonly detail: string
  readonly options?: ProblemOptions
}

/** Thrown to refuse a request; the error handler sends it as the response. Nobody reads its stack. */
export class RequestProblem extends Error implements Problem {
  override name = 'RequestProblem'
  readonly code: ProblemCode
  readonly options: ProblemOptions

  constructor(code: ProblemCode, detail: string, options: ProblemOptions = {}) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(detail)
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.options = options
  }

  get detail(): string {
    return this.message
  }
}

export const invalidRequest = (detail: string) => new RequestProblem('parameter_invalid', detail)

/** The problem for a body that is valid JSON but breaks the contract. */
export function brokenContract(detail: string, failure: CheckFailure): RequestProblem {
  return new RequestProblem('contract_violation', `${detail}; see errors`, {
    extra: listedViolations(failure),
  })
}

/** `Retry-After` for problems that resolve without action by the client. */
const retryAfterSeconds: Partial<Record<ProblemCode, number>> = {
  store_unavailable: 1,
  store_full: 10,
  too_many_lanes: 10,
  open_work_limited: 10,
  shutting_down: 1,
  overloaded: 1,
}

const sent = new WeakMap<FastifyReply, Problem>()

/** The problem with which a request was refused, for the audit log. */
export const sentProblemOf = (reply: FastifyReply): Problem | undefined => sent.get(reply)

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  sent.set(reply, problem)
  lingerUntilSent(reply.request.raw)
  const { status, headers, body } = writtenProblem(problem)
  return reply.code(status).headers(headers).send(body)
}

/** How much of a refused body is read and discarded before the connection is closed. */
const MOST_DISCARDED_BYTES = 64 * 2 ** 20

/**
 * Lets a client that sends its whole request before it reads the response, such as Python's urllib, read the
 * refusal of its body. If a connection is closed while unread bytes arrive, the kernel resets it, and the
 * client gets an error instead of the response. So the rest of the body is read and discarded first. How long
 * that takes is bounded by the time in which a request must arrive.
 */
export function lingerUntilSent(request: IncomingMessage): void {
  if (request.complete) return
  const { socket } = request
  // Node calls this after the last response of the connection.
  const close = socket.destroySoon
  socket.destroySoon = () => {
    socket.destroySoon = close
    if (request.complete) {
      socket.destroySoon()
      return
    }
    const most = socket.bytesRead + MOST_DISCARDED_BYTES
    request.on('data', () => {
      if (socket.bytesRead > most) socket.destroy()
    })
    request.once('end', () => socket.destroySoon())
    socket.end()
  }
}

/** The body is a Buffer: to a string Fastify would add a charset, which this media type does not have. */
export function writtenProblem({ code, detail, options: { extra, headers } = {} }: Problem): {
  status: number
  headers: Record<string, string>
  body: Buffer
} {
  const document = problem(code, detail, extra)
  const retryAfter = retryAfterSeconds[code]
  return {
    status: document.status,
    headers: {
      ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
      'cache-control': 'no-store',
      ...headers,
      'content-type': PROBLEM_MEDIA_TYPE,
    },
    body: Buffer.from(JSON.stringify(document)),
  }
}

export const TYPE_NOT_JSON = 'the body must be sent with Content-Type: application/json'

/** Problems for the errors that Fastify raises, by error code. */
const frameworkFaults: Readonly<Record<string, { code: ProblemCode; detail: string }>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: { code: 'unsupported_media_type', detail: TYPE_NOT_JSON },
  FST_ERR_BAD_URL: { code: 'bad_request', detail: 'the path is not validly percent-encoded UTF-8' },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'bad_request', detail: 'a segment of the path is too long' },
}

interface Requested {
  readonly method?: string | undefined
  readonly url?: string | undefined
}

export type ProblemOf = (error: unknown, requested: Requested) => Problem

/** Converts errors to problems. All errors of requests pass through here. */
export function problemMapper({ log }: { readonly log: Log }): ProblemOf {
  return (error, { method, url }) => {
    if (error instanceof RequestProblem) return error
    if (error instanceof StoreUnavailable) return { code: error.code, detail: error.message }
    const fault = frameworkFaults[codeOf(error)]
    if (fault !== undefined) return fault
    if (isClientFault(error))
      return { code: 'bad_request', detail: 'the request could not be read completely' }
    const instance = `urn:uuid:${randomUUID()}`
    log.error({ err: error, instance, method, url }, 'a request failed unexpectedly')
    return {
      code: 'internal',
      detail: 'an unexpected error occurred; see the log of the service',
      options: { extra: { instance } },
    }
  }
}

export function errorAnswers(
  { handOff }: { readonly handOff: Pick<HandOff, 'isDraining'> },
  problemOf: ProblemOf,
) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    // Fastify closes the connection after any error in a body. If the body was read completely, that only
    // forces the client to reconnect. If it was not, discarding the rest lets the client read the response.
    // Without the header, Node would keep the connection of a client that has closed its side.
    if (reply.hasHeader('connection') && !handOff.isDraining)
      reply.header('connection', reply.raw.shouldKeepAlive ? 'keep-alive' : 'close')
    if (frameworkFaults[codeOf(error)] !== undefined) request.raw.resume()
    if (error instanceof NotServed) {
      answerNotServed(reply, error)
      return reply
    }
    return sendProblem(reply, problemOf(error, request))
  }
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | null)?.code)
}

/** Such as a connection that was closed within the body. Fastify sets a 4xx `statusCode` on these errors. */
function isClientFault(error: unknown): boolean {
  const status = (error as { statusCode?: unknown } | null)?.statusCode
  return typeof status === 'number' && status >= 400 && status < 500
}
