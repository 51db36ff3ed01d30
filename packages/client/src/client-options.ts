import type { FailedTry } from './persistence.ts'

/** How to reach a service, and how to handle failures. */
export interface BatonClientOptions {
  /**
   * The service's base URL, with its path if it is mounted under one: `https://data.example.com/baton`. For a
   * service with several nodes, several URLs can be given: if one is unavailable, the next is used.
   */
  readonly url: string | URL | readonly (string | URL)[]
  /** Sent as `Authorization: Bearer`. A function is called before each request, for tokens that change. */
  readonly token?: string | (() => string | Promise<string>)
  /** The name of this client (`X-Instance-Id`), shown to operators. It grants no permissions. */
  readonly instanceId?: string
  /**
   * The name of the table field on the wire, if the deployment has its own. Programs always read and write
   * `computeTableName`.
   * @defaultValue `'computeTableName'`
   */
  readonly tableField?: string
  /**
   * The timeout of one request, in addition to the requested wait time.
   * @defaultValue `30`
   */
  readonly timeoutSeconds?: number
  /**
   * How long a call is retried while the service is unavailable or answers with a retry delay. Zero means a
   * single try. Repeating is safe: a pull has an `Idempotency-Key`, and every other call is idempotent. The
   * exception is a `retry` with `done`, which is tried once unless the call itself sets `retryForSeconds`.
   * @defaultValue `30`
   */
  readonly retryForSeconds?: number
  /** Headers of each request, for instance the `traceparent` of the current trace. */
  readonly headers?: Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>)
  /** Called for each request that failed and will be repeated, unless the call has its own listener. */
  readonly onFailure?: (failed: FailedTry) => void
  /** Called when a request has ended, including each failed request that will be repeated. */
  readonly onRequest?: (request: RequestReport) => void
  /**
   * Used for all requests instead of the platform's HTTP client. By default, Node sends requests with
   * `node:http`, which needs less CPU, and uses `fetch` only for redirects and streams.
   */
  readonly fetch?: typeof globalThis.fetch
}

/** A request that has ended. */
export interface RequestReport {
  readonly method: string
  readonly path: string
  /** `undefined` if no answer arrived. */
  readonly status: number | undefined
  readonly millis: number
  /** The error, if the request failed. */
  readonly error: unknown
}
