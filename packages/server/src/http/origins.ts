import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { PeerRefusal } from '../cluster/followers.ts'
import { REFUSED_HEADER, REFUSED_STATUS } from '../cluster/forwarded-request.ts'
import type { AdmittedRequest } from '../cluster/forwarder.ts'

const origins = new WeakMap<IncomingHttpHeaders, AdmittedRequest>()

/** What the follower reports about a forwarded request; undefined for requests that came here directly. */
export const originOf = (headers: IncomingHttpHeaders): AdmittedRequest | undefined => origins.get(headers)

/** Notes the origin of a request whose signature was checked, and gives it the Host header of its client. */
export function noteOrigin(headers: IncomingHttpHeaders, origin: AdmittedRequest): void {
  origins.set(headers, origin)
  if (origin.host === null) delete headers.host
  else headers.host = origin.host
}

/** Nothing of a forwarded request was done: the follower sends it to the next leader. */
export class NotServed extends Error {
  override name = 'NotServed'
  readonly refusal: PeerRefusal

  constructor(refusal: PeerRefusal) {
    super(`a forwarded request was refused as ${refusal}`)
    this.refusal = refusal
  }
}

/** Answers a forwarded request of which nothing was done. */
export function refuse(reply: FastifyReply, { refusal }: NotServed): void {
  reply.hijack()
  const { raw: response } = reply
  // The rest of the body is not read.
  if (!response.req.complete) response.shouldKeepAlive = false
  response.writeHead(REFUSED_STATUS, { [REFUSED_HEADER]: refusal, 'content-length': 0 }).end()
}
