import type { FailedTry } from './persistence.ts'

/** How to reach a service, and how to behave towards it. */
export interface BatonClientOptions {
  /**
   * The service's base URL, with its path if it is mounted under one: `https://data.example.com/baton`. Of a service with
   * several nodes there may be several: where one is away, the next is asked.
   */
  readonly url: string | URL | readonly (string | URL)[]
  /** Sent as `Authorization: Bearer`. A function is asked before each request, for tokens that change. */
  readonly token?: string | (() => string | Promise<string>)
  /** The name that this client goes by (`X-Instance-Id`), shown to operators. It grants nothing. */
  readonly instanceId?: string
  /**
   * The wire's name for the table field, where the deployment has one of its own. Programs always read and write
   * `computeTableName`.
   * @defaultValue `'computeTableName'`
   */
  readonly tableField?: string
  /**
   * How long one request may take before it counts as lost, beyond the time that it was asked to wait.
   * @defaultValue `30`
   */
  readonly timeoutSeconds?: number
  /**
   * How long a call goes on trying while the service is away or asks for patience. Zero tries once. Repeating is
   * safe: a pull carries an `Idempotency-Key`, everything else is idempotent by itself. The exception is a `retry`
   * with `done`, which is tried once unless the call itself says otherwise.
   * @defaultValue `30`
   */
  readonly retryForSeconds?: number
  /** Headers for each request, for instance the `traceparent` of the trace under way. */
  readonly headers?: Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>)
  /** Told about each request that failed and will be repeated, unless the call has a listener of its own. */
  readonly onFailure?: (failed: FailedTry) => void
  /** Told about each request once it is over, also about those that failed and will be repeated. */
  readonly onRequest?: (request: RequestReport) => void
  /**
   * Used for everything that is asked, in place of the platform's. Without it Node asks by `node:http`, which takes a third
   * of the processor time, and only redirects and streams go by `fetch`.
   */
  readonly fetch?: typeof globalThis.fetch
}

/** One request that is over. */
export interface RequestReport {
  readonly method: string
  readonly path: string
  /** `undefined` when no answer came. */
  readonly status: number | undefined
  readonly millis: number
  /** What the request failed with, if it did. */
  readonly error: unknown
}
