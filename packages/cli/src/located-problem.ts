import { ProblemError, type Violation } from '@baton/client'

/** Maps what was sent to what the user wrote. */
export interface Origin {
  /**
   * A line of a file, or a name on the command line. `undefined` if the pointer itself is the best
   * description.
   */
  readonly placeOf: (pointer: string) => string | undefined
  /** Rewrites a fault that mentions other positions. */
  readonly inItsTerms?: (detail: string) => string
  /** A hint for all faults together, if no single fault is enough to explain them. */
  readonly hintFor?: (errors: readonly Violation[]) => string | undefined
}

/**
 * A problem whose pointers refer to the request, with the way to translate them for users who never saw the
 * request.
 */
export class LocatedProblem extends Error {
  override name = 'LocatedProblem'
  readonly problemError: ProblemError
  readonly origin: Origin

  constructor(problemError: ProblemError, origin: Origin) {
    super(problemError.message)
    this.problemError = problemError
    this.origin = origin
  }
}

/** Wraps problems of the service. Other errors are returned unchanged. */
export function located(error: unknown, origin: Origin): unknown {
  return error instanceof ProblemError ? new LocatedProblem(error, origin) : error
}
