/** A request to send. */
export interface SentRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal
  /** For browsers, which have a cache. */
  readonly cache: 'no-store'
}

/** The part of an answer that the client reads, independent of the HTTP client. */
export interface Received {
  readonly ok: boolean
  readonly status: number
  readonly headers: ReceivedHeaders
  /** Whether the answer came after a redirect, and from where. */
  readonly redirected?: boolean
  readonly url?: string
  text(): Promise<string>
}

export interface ReceivedHeaders {
  get(name: string): string | null
}

/** Like fetch, rejects with a TypeError for every network failure. */
export type Send = (url: string, request: SentRequest) => Promise<Received>

/** The implementation for all platforms. Node has its own: `node/send.ts`. */
export const send: Send = (url, request) => fetch(url, request)

/** Why a request cannot be sent at all. Browsers do not say why a fetch failed. */
export const unsendableText = (_base: string, _error: unknown): string | undefined => undefined

/** Whether a failed request never reached a service. */
export const isUnconnected = (_error: unknown): boolean => false
