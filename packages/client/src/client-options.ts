import type {
  InstanceSort,
  InstanceState,
  PartitionOrder,
  PartitionState,
  PulledPartition,
  TaskSettingsRequest,
  TaskState,
  ThroughputStep,
} from '@baton/protocol'
import type { FailedTry } from './retry.ts'

/** How to reach a service, and how to handle failures. */
export interface BatonClientOptions {
  /**
   * The service's base URL, with its path if it is mounted under one: `https://data.example.com/baton`. For a
   * service with several nodes, several URLs can be given: if one is unavailable, the next is used. Requests
   * move to the leader if a node names its URL and it is one of these.
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

const WORDS_PER_KEY = 3
/**
 * Random words for many keys at once, because a separate call for each key is expensive for an idle worker.
 */
const random = new Uint32Array(WORDS_PER_KEY * 64)
let used = random.length

/**
 * Creates the idempotency key of a pull. Repeating the pull with the same key returns the same leases, never
 * new ones. The key begins with the time, like a UUID of version 7, so that databases store recent keys next
 * to each other.
 */
export function newIdempotencyKey(): string {
  if (used === random.length) {
    // Not randomUUID, which browsers offer in secure contexts only.
    crypto.getRandomValues(random)
    used = 0
  }
  let key = hexOf(Date.now(), 12)
  for (const end = used + WORDS_PER_KEY; used < end; used += 1) key += hexOf(random[used] ?? 0, 8)
  return key
}

function hexOf(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}

/** The options of every call. */
export interface CallOptions {
  /** Aborts the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** How long this call is retried. See `retryForSeconds` of the client. */
  readonly retryForSeconds?: number | undefined
  /** The timeout of each request of this call. */
  readonly timeoutSeconds?: number | undefined
  /**
   * The trace that this call belongs to (W3C Trace Context). Overrides a `traceparent` in the `headers` of
   * the client. The trace of a call-back is handed out with its partitions.
   */
  readonly traceparent?: string | undefined
  /** Called for each request that failed and will be repeated. */
  readonly onFailure?: ((failed: FailedTry) => void) | undefined
}

/** The options of a call-back. */
export interface SealableCallOptions extends CallOptions {
  /**
   * Also seals the task, in the same transaction that stores the array: no new partitions will follow. A
   * number is the total number of partitions of the task.
   */
  readonly seal?: boolean | number | undefined
  /** Settings of the task to change. Null goes back to the value of the service. */
  readonly settings?: TaskSettingsRequest | undefined
}

/**
 * Which partitions to pull: any of these tables, and any of these tasks. An absent filter matches everything.
 */
export interface Chosen {
  /** Compute tables, as `schema.table`. At most 50. */
  readonly tables?: readonly string[] | undefined
  /** Task ids. At most 50. */
  readonly tasks?: readonly string[] | undefined
}

/** How much to pull, and what. */
export interface PullChoice extends Chosen {
  /** The most partitions to pull, up to 1000. The default is 1, or 1000 if `records` is given. */
  readonly batch?: number | undefined
  /**
   * Stop once the pulled partitions have at least this many records in total. The first partition is always
   * given.
   */
  readonly records?: number | undefined
  /** How long to wait if nothing is ready, up to 60 seconds. */
  readonly waitSeconds?: number | undefined
}

export interface PullOptions extends PullChoice, CallOptions {
  /**
   * The idempotency key of this pull; generated if absent. Repeating the pull with the same key returns the
   * same leases.
   */
  readonly idempotencyKey?: string | undefined
}

export interface SettleOptions extends CallOptions {
  /** Also pulls the next partitions, in the same request. */
  readonly pull?: PullChoice | undefined
  /** The idempotency key of the pull, if there is one. */
  readonly idempotencyKey?: string | undefined
}

export interface Pulled<Fields extends object = object> {
  /** In hand-off order. Empty if nothing is ready. */
  readonly partitions: (PulledPartition & Fields)[]
  /** If nothing was ready: how long to wait before the next pull. */
  readonly retryAfterSeconds: number | undefined
}

/**
 * Which backlog to consider, and the time within which it should be finished. The default target is
 * configured at the service.
 */
export interface ScaleOptions extends Chosen, CallOptions {
  readonly targetSeconds?: number | undefined
}

/** One page of a list: its cursor (`next` of the previous page) and its maximum length. */
export interface PageOptions extends CallOptions {
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

export interface AuditOptions extends PageOptions {
  /** Only changes of this task. */
  readonly task?: string | undefined
  /** Only changes by this token or user. */
  readonly name?: string | undefined
}

export interface TasksOptions extends PageOptions {
  readonly state?: TaskState | undefined
  /** Only tasks with parked partitions, in any state. */
  readonly parked?: boolean | undefined
  /** Only tasks whose id contains this text. */
  readonly search?: string | undefined
}

export interface InstanceListOptions extends PageOptions {
  /** Only instances whose name contains this text. */
  readonly search?: string | undefined
  readonly status?: InstanceState | undefined
  /** By name (the default), the last seen first, or those with most leases first. */
  readonly sort?: InstanceSort | undefined
}

export interface ManifestOptions extends CallOptions {
  readonly state?: PartitionState | undefined
  readonly level?: number | undefined
}

export interface ThroughputOptions extends CallOptions {
  /** The default is `minute`. Minutes are kept for a day, hours for the retention period of the service. */
  readonly step?: ThroughputStep | undefined
  /** The default is a day before `to`, or seven days for hours. A string must be an RFC 3339 timestamp. */
  readonly from?: Date | string | undefined
  /** The default is now. */
  readonly to?: Date | string | undefined
  /** Return a separate point for each level. */
  readonly by?: 'level' | undefined
}

export interface GridOptions extends CallOptions {
  /** The default is the lowest level. */
  readonly level?: number | undefined
  /** The most cells. */
  readonly cells?: number | undefined
}

export interface PartitionsOptions extends PageOptions {
  readonly state?: PartitionState | undefined
  readonly level?: number | undefined
  /** A range of indexes of the level. */
  readonly indexes?: { readonly first: number; readonly last: number } | undefined
  /** A name, or the beginning of names followed by `*`. */
  readonly name?: string | undefined
  /** Only partitions of which this instance holds the lease. */
  readonly holder?: string | undefined
  /** Only partitions whose last failure is of the group with this key; see `failures` of a task. */
  readonly reason?: string | undefined
  /** By level and index if omitted. `unfinished`: finished ones last. */
  readonly order?: PartitionOrder | undefined
}

/** The trace of a request: the one that all its elements share, or none. */
export function sharedTrace(traceparents: readonly (string | undefined)[]): string | undefined {
  const [first] = traceparents
  return traceparents.every((one) => one === first) ? first : undefined
}
