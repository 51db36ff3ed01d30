import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

// What a follower and its leader agree on: headers, content and signature of a forwarded request.

/** What the follower found out about a forwarded request, signed. The leader believes nothing else. */
export const FORWARDED_HEADER = 'baton-forwarded'
/** In the answer to a forwarded request: the id of the node that gave it. */
export const NODE_HEADER = 'baton-node'
/** In an answer with `REFUSED_STATUS`: why nothing of the forwarded request was done. */
export const REFUSED_HEADER = 'baton-refused'
export const REFUSED_STATUS = 421

export interface ForwardedClient {
  readonly address: string | null
  readonly host: string | null
  readonly scheme: string
  /** The user who signed in at a proxy; null or absent without one. */
  readonly user?: { readonly name: string; readonly groups: readonly string[] } | null
  /** The name of the follower, which `/test/instance-status` describes. */
  readonly instanceId: string
}

export interface ForwardedContent extends ForwardedClient {
  readonly digest: string
  /** How long the follower has had the request, which a waiting pull does not wait again. */
  readonly waitedMillis: number
}

export interface ForwardableRequest {
  readonly method: string
  /** Path and query below the base path. */
  readonly target: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer | null
  readonly client: ForwardedClient
  /** On the stopwatch of this process. */
  readonly arrivedAt: number
  /** Aborted when the client has disconnected. */
  readonly signal: AbortSignal
}

export interface ForwardedAnswer {
  head(status: number, headers: IncomingHttpHeaders): void
  /** False: write no more before `drained` is called. */
  write(chunk: Buffer, drained: () => void): boolean
  end(): void
  /** The answer was cut off after its head. */
  cut(): void
}

/** Headers of one connection, and those that claim what the signed header says. */
const NOT_FORWARDED = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['expect', 'host', 'content-length', 'content-encoding', FORWARDED_HEADER],
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'],
  ...['x-forwarded-user', 'x-forwarded-groups'],
])

/** The headers that are sent to the leader. Bodies were decompressed by this node. */
export function forwardedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const named = (headers.connection ?? '').toLowerCase().split(/\s*,\s*/)
  const sent: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers))
    if (typeof value === 'string' && !NOT_FORWARDED.has(name) && !named.includes(name)) sent[name] = value
  return sent
}

/** Headers that HTTP itself adds on the way to the leader. */
const ADDED = new Set(['host', 'connection', 'content-length', FORWARDED_HEADER])

/** What the signature covers besides its own content: the whole request but for the body, which has a digest. */
export function coveredText(method: string, target: string, headers: IncomingHttpHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    ADDED.has(name) ? [] : [`${name}: ${value}`],
  )
  return [`forward ${method} ${target}`, ...lines.sort()].join('\n')
}

export const digestOf = (body: Buffer | null): string => hash('sha256', body ?? '', 'base64url')
