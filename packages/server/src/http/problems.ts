import { PROBLEM_MEDIA_TYPE, type ProblemCode, type ProblemExtra, problem } from '@baton/protocol'
import type { FastifyReply } from 'fastify'

export interface ProblemOptions {
  readonly extra?: ProblemExtra
  readonly headers?: Readonly<Record<string, string>>
}

/** Thrown where a request cannot be carried out; the error handler answers with it. */
export class RequestProblem extends Error {
  override name = 'RequestProblem'
  readonly code: ProblemCode
  readonly options: ProblemOptions

  constructor(code: ProblemCode, detail: string, options: ProblemOptions = {}) {
    super(detail)
    this.code = code
    this.options = options
  }
}

/** How long a client should leave a problem alone that goes away by itself. */
const retryAfterSeconds: Partial<Record<ProblemCode, number>> = {
  store_unavailable: 1,
  store_full: 10,
  shutting_down: 1,
  overloaded: 1,
}

export function sendProblem(
  reply: FastifyReply,
  code: ProblemCode,
  detail: string,
  { extra, headers = {} }: ProblemOptions = {},
): FastifyReply {
  const document = problem(code, detail, extra)
  const retryAfter = retryAfterSeconds[code]
  if (retryAfter !== undefined) reply.header('retry-after', String(retryAfter))
  // As bytes: to a text Fastify would add a charset, which this media type does not have.
  return reply
    .code(document.status)
    .headers({ 'cache-control': 'no-store', ...headers })
    .type(PROBLEM_MEDIA_TYPE)
    .send(Buffer.from(JSON.stringify(document)))
}
