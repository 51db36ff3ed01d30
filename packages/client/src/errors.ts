import type { Conflict, Problem, ProblemCode, RefusalCode, Violation } from '@baton/protocol'

/**
 * The progress of a call-back. Repeating the call-back is safe: stored partitions then count as duplicates.
 */
export interface CallBackProgress {
  /** Descriptors that the service has acknowledged. */
  readonly sent: number
  /** The number of sent descriptors that were new. */
  readonly accepted: number
  /** The number of sent descriptors that the service already had, unchanged. */
  readonly duplicates: number
}

/**
 * The base class of all errors that calls of this library reject with, except the reason of an aborted
 * signal.
 */
export abstract class BatonError extends Error {
  /** Whether the same call, unchanged, may succeed later. */
  readonly retryable: boolean
  /** The retry delay that the service requested, if it did. */
  readonly retryAfterSeconds: number | undefined
  /** For a call-back in several requests: what the service had stored before the error. */
  stored: CallBackProgress | undefined

  constructor(text: string, options: ErrorOptions & { retryable: boolean; retryAfterSeconds?: number }) {
    super(text, options)
    this.retryable = options.retryable
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/** The service answered with a problem document. */
export class ProblemError extends BatonError {
  override name = 'ProblemError'
  /** The error code, from the registry of codes. */
  readonly code: ProblemCode
  /** The HTTP status. */
  readonly status: number
  /**
   * Private, because Node prints all public fields of an uncaught error, and this may list a hundred
   * violations.
   */
  readonly #problem: Problem

  constructor(problem: Problem, retryAfterSeconds?: number) {
    const timing = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
    super(`${problem.title}: ${problem.detail}`, { retryable: problem.retryable, ...timing })
    this.code = problem.code
    this.status = problem.status
    this.#problem = problem
  }

  /** The whole problem document (RFC 9457). */
  get problem(): Problem {
    return this.#problem
  }
}

/** The call-back breaks the contract. The client found it before sending, or the service did. */
export class ContractError extends ProblemError {
  override name = 'ContractError'
  /** The number of all violations, including those that are not listed. */
  readonly violationCount: number
  /** What found the violations: the client, which then sent none of what it checked, or the service. */
  readonly foundBy: 'client' | 'service'

  constructor(problem: Problem, foundBy: 'client' | 'service' = 'service') {
    super(problem)
    this.foundBy = foundBy
    const { violations } = this
    this.violationCount = violations.length + (problem.errorsOmitted ?? 0)
    const [first] = violations
    if (first !== undefined) {
      const others = this.violationCount > 1 ? ` (and ${this.violationCount - 1} more)` : ''
      this.message = `${problem.title}: ${first.pointer || 'the whole'}: ${first.detail}${others}`
    }
  }

  /** Each violation, with a JSON Pointer into what the caller passed. At most a hundred. */
  get violations(): readonly Violation[] {
    return this.problem.errors ?? []
  }
}

/** The service already has some of the partitions, with other content. */
export class ConflictError extends ProblemError {
  override name = 'ConflictError'
  /** The number of all conflicts, including those that are not listed. */
  readonly conflictCount: number

  constructor(problem: Problem) {
    super(problem)
    this.conflictCount = this.conflicts.length + (problem.conflictsOmitted ?? 0)
  }

  /** Each partition that contradicts an accepted one, with a JSON Pointer into what the caller passed. */
  get conflicts(): readonly Conflict[] {
    return this.problem.conflicts ?? []
  }
}

/**
 * No answer arrived: the service or the network is unavailable, or the request timed out. The request may
 * still have taken effect.
 */
export class UnreachableError extends BatonError {
  override name = 'UnreachableError'

  constructor(text: string, options: ErrorOptions = {}) {
    super(text, { ...options, retryable: true })
  }
}

/**
 * The request cannot be sent: an invalid header, a port that fetch blocks, a task id that a URL cannot
 * contain, or a value without a JSON form.
 */
export class UnsendableError extends BatonError {
  override name = 'UnsendableError'

  constructor(text: string) {
    super(text, { retryable: false })
  }
}

/** The answer is not from Baton: a proxy's error page, or a wrong URL. */
export class UnexpectedAnswerError extends BatonError {
  override name = 'UnexpectedAnswerError'
  readonly status: number

  constructor(text: string, status: number, retryAfterSeconds?: number) {
    const timing = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
    super(text, { retryable: status >= 500 || passingStatuses.has(status), ...timing })
    this.status = status
  }
}

/** Request timeout, too early, too many requests: temporary answers of proxies. */
const passingStatuses = new Set([408, 425, 429])

/** The reason of a handler's aborted signal: another worker has the partition, or may soon have it. */
export class LeaseLostError extends BatonError {
  override name = 'LeaseLostError'
  readonly leaseId: string
  /** `lease_unrenewed` if the lease could not be renewed in time because the service was unreachable. */
  readonly code: RefusalCode | 'lease_unrenewed'

  constructor(leaseId: string, code: RefusalCode | 'lease_unrenewed', detail: string) {
    super(detail, { retryable: false })
    this.leaseId = leaseId
    this.code = code
  }
}

/** The reason of a handler's aborted signal: the worker is stopping, and the time to finish is over. */
export class WorkerStoppedError extends BatonError {
  override name = 'WorkerStoppedError'

  constructor() {
    super('the worker is stopping and the time limit for running handlers has passed', { retryable: false })
  }
}

/** Creates the error class that matches a problem document. */
export function problemError(problem: Problem, retryAfterSeconds?: number): ProblemError {
  if (problem.code === 'contract_violation') return new ContractError(problem)
  if (problem.code === 'partition_conflict') return new ConflictError(problem)
  return new ProblemError(problem, retryAfterSeconds)
}

/** Whether the service, or a proxy in front of it, refused the body as too large. */
export function isTooLarge(error: unknown): boolean {
  return (error as { status?: unknown }).status === 413
}
