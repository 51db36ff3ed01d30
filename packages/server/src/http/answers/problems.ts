import {
  type CheckFailure,
  listedViolations,
  PROBLEM_MEDIA_TYPE,
  type ProblemCode,
  type ProblemExtra,
  problem,
} from '@baton/protocol'
import type { FastifyReply } from 'fastify'

export interface ProblemOptions {
  readonly extra?: ProblemExtra
  readonly headers?: Readonly<Record<string, string>>
}

/** Why a request is refused, before it is converted to an HTTP response. */
export interface UnwrittenProblem {
  readonly code: ProblemCode
  readonly detail: string
  readonly options?: ProblemOptions
}

/** Thrown to refuse a request; the error handler sends it as the response. */
export class RequestProblem extends Error implements UnwrittenProblem {
  override name = 'RequestProblem'
  readonly code: ProblemCode
  readonly options: ProblemOptions

  constructor(code: ProblemCode, detail: string, options: ProblemOptions = {}) {
    super(detail)
    this.code = code
    this.options = options
  }

  get detail(): string {
    return this.message
  }
}

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
  shutting_down: 1,
  overloaded: 1,
}

const sent = new WeakMap<FastifyReply, UnwrittenProblem>()

/** The problem with which a request was refused, for the audit log. */
export const problemOf = (reply: FastifyReply): UnwrittenProblem | undefined => sent.get(reply)

export function sendProblem(reply: FastifyReply, problem: UnwrittenProblem): FastifyReply {
  sent.set(reply, problem)
  const { status, headers, body } = writtenProblem(problem)
  return reply.code(status).headers(headers).send(body)
}

/**
 * The body is a Buffer, because Fastify would add a charset to a string, which this media type does not have.
 */
export function writtenProblem({ code, detail, options: { extra, headers } = {} }: UnwrittenProblem): {
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
