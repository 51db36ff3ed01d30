import type { Settlement } from '@baton/protocol'
import { MAX_KEPT_REASON_LENGTH, MAX_RETRY_AFTER_SECONDS } from '@baton/protocol/core'

/** Finished with the partition. A handler that returns nothing means the same. */
export interface DoneOutcome {
  readonly outcome?: 'done'
  /** How many records were processed; the service shows where that differs from what was declared. */
  readonly records?: number
}

/** Tried and could not; costs the partition an attempt. A handler that throws means the same. */
export interface FailedOutcome {
  readonly outcome: 'failed'
  /** Shown to operators. */
  readonly reason?: string
  /** No further attempt would help: park the partition now. */
  readonly final?: boolean
  /** Replaces the service's back-off before the next attempt. */
  readonly retryAfterSeconds?: number
}

/** Given back untried; costs no attempt. */
export interface ReleasedOutcome {
  readonly outcome: 'released'
  /** Shown to operators. */
  readonly reason?: string
  /** How long to leave the partition alone. */
  readonly retryAfterSeconds?: number
}

/** How the work on a partition ended. */
export type HandlingOutcome = DoneOutcome | FailedOutcome | ReleasedOutcome

interface FailedOptions extends ErrorOptions {
  readonly final?: boolean
  readonly retryAfterSeconds?: number
}

/** Thrown in a handler: like any error, with a say in what comes after. */
export class Failed extends Error {
  override name = 'Failed'
  readonly final: boolean
  readonly retryAfterSeconds: number | undefined

  constructor(reason: string, options: FailedOptions = {}) {
    super(reason, options)
    this.final = options.final ?? false
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/** Thrown in a handler: gives the partition back untried. */
export class Released extends Error {
  override name = 'Released'
  readonly retryAfterSeconds: number | undefined

  constructor(reason: string, options: ErrorOptions & { readonly retryAfterSeconds?: number } = {}) {
    super(reason, options)
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/** What a handler returned. Something that is no outcome means done: handlers may return what they like. */
export function outcomeOfResult(result: unknown): HandlingOutcome {
  if (typeof result !== 'object' || result === null) return { outcome: 'done' }
  const { outcome } = result as { outcome?: unknown }
  return outcome === 'failed' || outcome === 'released'
    ? (result as HandlingOutcome)
    : { ...(result as DoneOutcome), outcome: 'done' }
}

/**
 * What a handler threw. Whoever breaks off because they were told to has not failed, unless they say in so many words
 * how it ended.
 */
export function outcomeOfError(error: unknown, wasTold: boolean): HandlingOutcome {
  if (error instanceof Released || error instanceof Failed) {
    const { message: reason, retryAfterSeconds } = error
    const timing = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
    return error instanceof Released
      ? { outcome: 'released', reason, ...timing }
      : { outcome: 'failed', reason, final: error.final, ...timing }
  }
  return wasTold
    ? { outcome: 'released', reason: 'the worker stopped' }
    : { outcome: 'failed', reason: reasonOf(error) }
}

/** The error and what caused it, for a person. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const own = error.message === '' ? error.name : `${error.name}: ${error.message}`
  return error.cause === undefined ? own : `${own}; caused by ${reasonOf(error.cause)}`
}

/**
 * The settlement of a lease. Whatever a handler says becomes something that the service accepts: a settlement is
 * sent together with others, and a stray character must not cost a partition its outcome.
 */
export function settlementOf(leaseId: string, handled: HandlingOutcome): Settlement {
  const { outcome = 'done', records } = handled as DoneOutcome
  const { reason, retryAfterSeconds, final } = handled as Partial<FailedOutcome>
  return {
    leaseId,
    outcome,
    ...(reason === undefined ? {} : { reason: sendable(reason) }),
    ...(isCount(records) ? { records } : {}),
    ...(final === true ? { final } : {}),
    ...(typeof retryAfterSeconds === 'number' && retryAfterSeconds >= 0
      ? { retryAfterSeconds: Math.min(retryAfterSeconds, MAX_RETRY_AFTER_SECONDS) }
      : {}),
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function sendable(reason: unknown): string {
  const text = String(reason).replaceAll('\0', '')
  const kept = text.length > MAX_KEPT_REASON_LENGTH ? `${text.slice(0, MAX_KEPT_REASON_LENGTH - 1)}…` : text
  return kept.toWellFormed()
}
