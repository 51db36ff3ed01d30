import type { IncomingHttpHeaders } from 'node:http'
import { readTraceparent } from '@baton/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Serve } from './exchange.ts'

type Handler<Result> = (request: FastifyRequest, reply: FastifyReply) => Promise<Result>

/** Spans of requests. `name` is the method and the route. */
export interface RequestTracing {
  serve(name: string, serve: Serve): Serve
  handler<Result>(name: string, handler: Handler<Result>): Handler<Result>
  /** The traceparent that is stored with the partitions of a call-back and handed out with them. */
  traceparent(headers: IncomingHttpHeaders): string | null
}

/** Used without a tracing SDK: creates no spans, but still keeps the traceparent of call-backs. */
export const untraced: RequestTracing = {
  serve: (_name, serve) => serve,
  handler: (_name, handler) => handler,
  traceparent: (headers) => readTraceparent(headers['traceparent']?.toString()),
}
