import type { IncomingHttpHeaders } from 'node:http'
import { readTraceparent } from '@baton/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Serve } from './exchange.ts'

type Handler<Result> = (request: FastifyRequest, reply: FastifyReply) => Promise<Result>

/** Spans of requests. `name` is the method and the route. */
export interface RequestTracing {
  serve(name: string, serve: Serve): Serve
  handler<Result>(name: string, handler: Handler<Result>): Handler<Result>
  /** What the partitions of a call-back are handed out with. */
  traceparent(headers: IncomingHttpHeaders): string | null
}

/** Without an SDK nothing stands between a request and what serves it; the trace of a call-back is kept all the same. */
export const untraced: RequestTracing = {
  serve: (_name, serve) => serve,
  handler: (_name, handler) => handler,
  traceparent: (headers) => readTraceparent(headers['traceparent']?.toString()),
}
