/** A request as it goes out. */
export interface SentRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal
  /** For browsers, which have a cache. */
  readonly cache: 'no-store'
}

/** As much of an answer as is read here, whoever brought it. */
export interface Received {
  readonly ok: boolean
  readonly status: number
  readonly headers: ReceivedHeaders
  text(): Promise<string>
}

export interface ReceivedHeaders {
  get(name: string): string | null
}

/** Rejects with a TypeError for everything that the network can do to a request, as fetch does. */
export type Send = (url: string, request: SentRequest) => Promise<Received>

/** What there is on every platform. Node has something of its own: `node/send.ts`. */
export const send: Send = (url, request) => fetch(url, request)
