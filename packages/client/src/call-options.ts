import type {
  PartitionState,
  PulledPartition,
  TaskSettingsRequest,
  TaskState,
  ThroughputStep,
} from '@baton/protocol'
import type { FailedTry } from './persistence.ts'

const WORDS_PER_KEY = 3
/** For many keys at a time: asking for each took a worker without work to do a tenth of its processor time. */
const random = new Uint32Array(WORDS_PER_KEY * 64)
let used = random.length

/**
 * Names one pull: whoever sends it again gets the leases of the first time, never new ones. It begins with the time, as
 * a UUID of version 7 does: stores then write keys of the same time side by side.
 */
export function newIdempotencyKey(): string {
  if (used === random.length) {
    // Not randomUUID, which browsers have in secure contexts only.
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

/** What every call takes. */
export interface CallOptions {
  /** Ends the call; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** How long this call goes on trying; see `retryForSeconds` of the client. */
  readonly retryForSeconds?: number | undefined
  /** How long one request of this call may take before it counts as lost. */
  readonly timeoutSeconds?: number | undefined
  /**
   * The trace that this call belongs to (W3C Trace Context), in place of one among the `headers` of the client. That of a
   * call-back is handed out with its partitions.
   */
  readonly traceparent?: string | undefined
  /** Told about each request that failed and will be repeated. */
  readonly onFailure?: ((failed: FailedTry) => void) | undefined
}

/** What a call-back takes. */
export interface SealableCallOptions extends CallOptions {
  /**
   * Also seals the task, in the step that stores the array: nothing new will come. A number says how many partitions the
   * task has in all.
   */
  readonly seal?: boolean | number | undefined
  /** The settings of the task from now on, in place of what was set for it. */
  readonly settings?: TaskSettingsRequest | undefined
}

/** What to take: partitions of any of these tables, and of any of these tasks. Whatever is absent does not matter. */
export interface Chosen {
  /** Compute tables, as `schema.table`; up to 50. */
  readonly tables?: readonly string[] | undefined
  /** Ids of tasks; up to 50. */
  readonly tasks?: readonly string[] | undefined
}

/** How much to take, and what. */
export interface PullChoice extends Chosen {
  /** The most partitions to take, up to 1000. One when absent, or 1000 where there is a budget of `records`. */
  readonly batch?: number | undefined
  /** Stop taking once the records of what was taken reach this number; the first partition is always given. */
  readonly records?: number | undefined
  /** How long to wait when nothing is ready, up to 60 seconds. */
  readonly waitSeconds?: number | undefined
}

export interface PullOptions extends PullChoice, CallOptions {
  /** Names this pull; made up when absent. A repetition gets the leases of the first time. */
  readonly idempotencyKey?: string | undefined
}

export interface SettleOptions extends CallOptions {
  /** Also take the next partitions, in the same request. */
  readonly pull?: PullChoice | undefined
  /** Names the pull, when there is one. */
  readonly idempotencyKey?: string | undefined
}

export interface Pulled<Fields extends object = object> {
  /** In the order in which they were due; empty when nothing is ready. */
  readonly partitions: (PulledPartition & Fields)[]
  /** When nothing was ready: how soon it is worth asking again. */
  readonly retryAfterSeconds: number | undefined
}

/** Whose backlog, and within how long it is to be finished; as the service is set when absent. */
export interface ScaleOptions extends Chosen, CallOptions {
  readonly targetSeconds?: number | undefined
}

/** A page of a list: where to begin (the `next` of the page before) and how long it may be. */
export interface PageOptions extends CallOptions {
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

export interface TasksOptions extends PageOptions {
  readonly state?: TaskState | undefined
  /** Only tasks that have parked partitions, whatever their state. */
  readonly parked?: boolean | undefined
  /** Only tasks whose id contains this text. */
  readonly search?: string | undefined
}

export interface ManifestOptions extends CallOptions {
  readonly state?: PartitionState | undefined
  readonly level?: number | undefined
}

export interface ThroughputOptions extends CallOptions {
  /** `minute` unless given. Minutes are kept for a day, hours for the retention of the service. */
  readonly step?: ThroughputStep | undefined
  /** A day before `to` unless given, seven days for hours. A text is a time as RFC 3339 writes it. */
  readonly from?: Date | string | undefined
  /** Now unless given. */
  readonly to?: Date | string | undefined
  /** A point for each level. */
  readonly by?: 'level' | undefined
}

export interface PartitionsOptions extends PageOptions {
  readonly state?: PartitionState | undefined
  readonly level?: number | undefined
}
