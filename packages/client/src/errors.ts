import type { Conflict, Problem, ProblemCode, RefusalCode, Violation } from '@baton/protocol'

/** How far a call-back has come. Calling back again is safe: what is stored counts as duplicates then. */
export interface CallBackProgress {
  /** Descriptors that the service has answered for. */
  readonly sent: number
  /** Those of them that were new. */
  readonly accepted: number
  /** Those of them that were known already, unchanged. */
  readonly duplicates: number
}

/** Everything that a call of this library rejects with, apart from the reason of an aborted signal. */
export abstract class BatonError extends Error {
  /** Whether the same call, unchanged, may succeed later. */
  readonly retryable: boolean
  /** How long the service asked to be left alone, if it did. */
  readonly retryAfterSeconds: number | undefined
  /** For a call-back in several requests: what the service had stored before this happened. */
  stored: CallBackProgress | undefined

  constructor(text: string, options: ErrorOptions & { retryable: boolean; retryAfterSeconds?: number }) {
    super(text, options)
    this.retryable = options.retryable
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/** The service answered with a problem. */
export class ProblemError extends BatonError {
  override name = 'ProblemError'
  /** The kind of problem, from the registry of codes. */
  readonly code: ProblemCode
  /** The HTTP status. */
  readonly status: number
  /** Not a field: an error that nobody catches is printed with all of its fields, and this may be a hundred places. */
  readonly #problem: Problem

  constructor(problem: Problem, retryAfterSeconds?: number) {
    const timing = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
    super(`${problem.title}: ${problem.detail}`, { retryable: problem.retryable, ...timing })
    this.code = problem.code
    this.status = problem.status
    this.#problem = problem
  }

  /** The whole document (RFC 9457). */
  get problem(): Problem {
    return this.#problem
  }
}

/** What was to be sent breaks the contract: found here before sending, or by the service. */
export class ContractError extends ProblemError {
  override name = 'ContractError'
  /** How many there are in all, listed or not. */
  readonly violationCount: number
  /** Who found it: the client, and then nothing of it was sent, or the service. */
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

  /** Each place that is wrong, as a JSON Pointer into what the caller passed; at most a hundred. */
  get violations(): readonly Violation[] {
    return this.problem.errors ?? []
  }
}

/** Partitions are already known with other content. */
export class ConflictError extends ProblemError {
  override name = 'ConflictError'
  /** How many there are in all, listed or not. */
  readonly conflictCount: number

  constructor(problem: Problem) {
    super(problem)
    this.conflictCount = this.conflicts.length + (problem.conflictsOmitted ?? 0)
  }

  /** Each partition that contradicts what was accepted before, with a JSON Pointer into what the caller passed. */
  get conflicts(): readonly Conflict[] {
    return this.problem.conflicts ?? []
  }
}

/** No answer: the service is away, the network is, or it took too long. What was asked may have happened. */
export class UnreachableError extends BatonError {
  override name = 'UnreachableError'

  constructor(text: string, options: ErrorOptions = {}) {
    super(text, { ...options, retryable: true })
  }
}

/**
 * The request cannot be made at all: a header that HTTP cannot carry, a port that fetch never asks, a task id that no
 * URL can name, a value that JSON has no form for.
 */
export class UnsendableError extends BatonError {
  override name = 'UnsendableError'

  constructor(text: string) {
    super(text, { retryable: false })
  }
}

/** Something answered that is not Baton: a proxy's error page, a wrong URL. */
export class UnexpectedAnswerError extends BatonError {
  override name = 'UnexpectedAnswerError'
  readonly status: number

  constructor(text: string, status: number, retryAfterSeconds?: number) {
    const timing = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
    super(text, { retryable: status >= 500 || passingStatuses.has(status), ...timing })
    this.status = status
  }
}

/** Request timeout, too early, too many requests: what proxies answer for a while. */
const passingStatuses = new Set([408, 425, 429])

/** Why the signal of a handler was aborted: the partition is, or may soon be, in other hands. */
export class LeaseLostError extends BatonError {
  override name = 'LeaseLostError'
  readonly leaseId: string
  /** `lease_unrenewed` when the service could not be reached in time to say anything. */
  readonly code: RefusalCode | 'lease_unrenewed'

  constructor(leaseId: string, code: RefusalCode | 'lease_unrenewed', detail: string) {
    super(detail, { retryable: false })
    this.leaseId = leaseId
    this.code = code
  }
}

/** Why the signal of a handler was aborted: the worker stops and its time to finish is over. */
export class WorkerStoppedError extends BatonError {
  override name = 'WorkerStoppedError'

  constructor() {
    super('the worker is stopping and the time to finish is over', { retryable: false })
  }
}

/** The right class for a problem document. */
export function problemError(problem: Problem, retryAfterSeconds?: number): ProblemError {
  if (problem.code === 'contract_violation') return new ContractError(problem)
  if (problem.code === 'partition_conflict') return new ConflictError(problem)
  return new ProblemError(problem, retryAfterSeconds)
}
