import type { Settlement } from '@baton/protocol'
import { MAX_KEPT_REASON_LENGTH, MAX_RETRY_AFTER_SECONDS } from '@baton/protocol/core'

/** The partition is finished. A handler that returns nothing has the same effect. */
export interface DoneOutcome {
  readonly outcome?: 'done'
  /** The number of processed records. The service shows where it differs from the declared number. */
  readonly records?: number
}

/**
 * The attempt failed, and counts as an attempt of the partition. A handler that throws has the same effect.
 */
export interface FailedOutcome {
  readonly outcome: 'failed'
  /** Shown to operators. */
  readonly reason?: string
  /** No further attempt would help: park the partition now. */
  readonly final?: boolean
  /** Replaces the service's back-off before the next attempt. */
  readonly retryAfterSeconds?: number
}

/** The partition is released without an attempt being counted. */
export interface ReleasedOutcome {
  readonly outcome: 'released'
  /** Shown to operators. */
  readonly reason?: string
  /** How long to wait before the partition is handed out again. */
  readonly retryAfterSeconds?: number
}

/** How the work on a partition ended. */
export type HandlingOutcome = DoneOutcome | FailedOutcome | ReleasedOutcome

interface FailedOptions extends ErrorOptions {
  readonly final?: boolean
  readonly retryAfterSeconds?: number
}

/** Thrown in a handler: fails the partition, with control over the next attempt. */
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

/** Thrown in a handler: releases the partition without counting an attempt. */
export class Released extends Error {
  override name = 'Released'
  readonly retryAfterSeconds: number | undefined

  constructor(reason: string, options: ErrorOptions & { readonly retryAfterSeconds?: number } = {}) {
    super(reason, options)
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/** The outcome for what a handler returned. Any value that is not an outcome means done. */
export function outcomeOfResult(result: unknown): HandlingOutcome {
  if (typeof result !== 'object' || result === null) return { outcome: 'done' }
  const { outcome } = result as { outcome?: unknown }
  if (outcome !== 'failed' && outcome !== 'released') return { ...(result as DoneOutcome), outcome: 'done' }
  // Read here and not later: a getter that throws then counts as an error of the handler.
  const { reason, final, retryAfterSeconds, records } = result as FailedOutcome & DoneOutcome
  return { outcome, reason, final, retryAfterSeconds, records } as HandlingOutcome
}

/**
 * The outcome for what a handler threw. An error after an abort means released, not failed, unless the
 * handler threw an explicit `Failed` or `Released`.
 */
export function outcomeOfError(error: unknown, wasAborted: boolean): HandlingOutcome {
  const stopped = { outcome: 'released', reason: 'the worker stopped' } as const
  try {
    if (error instanceof Released || error instanceof Failed) {
      const { message: reason, retryAfterSeconds } = error
      const timing = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
      return error instanceof Released
        ? { outcome: 'released', reason, ...timing }
        : { outcome: 'failed', reason, final: error.final, ...timing }
    }
    return wasAborted ? stopped : { outcome: 'failed', reason: reasonOf(error) }
  } catch {
    // A program may throw anything, for instance an error whose getters throw.
    return wasAborted ? stopped : { outcome: 'failed', reason: UNREADABLE }
  }
}

/** The most errors of a chain of causes. */
const MOST_ERRORS = 10
const UNREADABLE = 'the reason cannot be converted to text'

/** The error and its causes, for a person. A chain of causes may be circular. */
function reasonOf(error: unknown): string {
  const chain = new Set<unknown>()
  let next = error
  do {
    chain.add(next)
    next = next instanceof Error ? next.cause : undefined
  } while (next !== undefined && !chain.has(next) && chain.size < MOST_ERRORS)
  return Array.from(chain, String).join('; caused by ')
}

/**
 * The settlement of a lease. Converts every outcome of a handler to a settlement that the service accepts:
 * settlements are sent in batches, and an invalid character must not make one fail.
 */
export function settlementOf(
  leaseId: string,
  handled: HandlingOutcome,
  checkpoint?: string | null,
): Settlement {
  const { outcome = 'done', records } = handled as DoneOutcome
  const { reason, retryAfterSeconds, final } = handled as Partial<FailedOutcome>
  return {
    leaseId,
    outcome,
    ...(reason === undefined ? {} : { reason: sendable(reason, MAX_KEPT_REASON_LENGTH) }),
    ...(isCount(records) ? { records } : {}),
    ...(checkpoint === undefined || outcome === 'done' ? {} : { checkpoint }),
    ...(final === true ? { final } : {}),
    ...(typeof retryAfterSeconds === 'number' && retryAfterSeconds >= 0
      ? { retryAfterSeconds: Math.min(retryAfterSeconds, MAX_RETRY_AFTER_SECONDS) }
      : {}),
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** A text that the service takes. */
export function sendable(value: unknown, most: number): string {
  const text = textOf(value).replaceAll('\0', '')
  return (text.length > most ? `${text.slice(0, most - 1)}…` : text).toWellFormed()
}

function textOf(value: unknown): string {
  try {
    return String(value)
  } catch {
    return UNREADABLE
  }
}
