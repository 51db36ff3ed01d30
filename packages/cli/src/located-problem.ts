import { ProblemError, type Violation } from '@baton/client'

/** The way from what was sent back to what the user wrote. */
export interface Origin {
  /** A line of a file, a name on the command line; `undefined` where nothing fits better than the pointer. */
  readonly placeOf: (pointer: string) => string | undefined
  /** What a fault says, where it mentions other places. */
  readonly inItsTerms?: (detail: string) => string
  /** What to do about the faults together, where each alone does not say. */
  readonly hintFor?: (errors: readonly Violation[]) => string | undefined
}

/** A problem whose pointers lead into what was sent, for people who never saw that. */
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

/** Everything that is no problem of the service stays as it is. */
export function located(error: unknown, origin: Origin): unknown {
  return error instanceof ProblemError ? new LocatedProblem(error, origin) : error
}
