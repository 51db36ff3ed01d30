import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { PeerRefusal } from '../cluster/followers.ts'
import { REFUSED_HEADER, REFUSED_STATUS } from '../cluster/forwarded-request.ts'
import type { AdmittedRequest } from '../cluster/forwarder.ts'

const clients = new WeakMap<IncomingHttpHeaders, AdmittedRequest>()

/** A forwarded request and its client, as the follower reports them; undefined for requests that came here directly. */
export const admittedRequestOf = (headers: IncomingHttpHeaders): AdmittedRequest | undefined =>
  clients.get(headers)

/** Called when the signature was checked. The request gets the Host header of its client. */
export function noteForwardedClient(headers: IncomingHttpHeaders, client: AdmittedRequest): void {
  clients.set(headers, client)
  if (client.host === null) delete headers.host
  else headers.host = client.host
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

export function answerNotServed(reply: FastifyReply, { refusal }: NotServed): void {
  reply.hijack()
  const { raw: response } = reply
  // The rest of the body is not read.
  if (!response.req.complete) response.shouldKeepAlive = false
  response.writeHead(REFUSED_STATUS, { [REFUSED_HEADER]: refusal, 'content-length': 0 }).end()
}
