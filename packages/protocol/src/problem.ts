import { type ErrorCode, errorCodes, type ProblemCode } from './error-codes.ts'
import type { Problem } from './schemas/problem.ts'
import type { CheckFailure } from './violations.ts'

export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

export type ProblemExtra = Pick<
  Problem,
  'instance' | 'errors' | 'errorsOmitted' | 'conflicts' | 'conflictsOmitted'
>

export function problemType(code: ErrorCode): string {
  return `urn:baton:problem:${code.replaceAll('_', '-')}`
}

export function problem(code: ProblemCode, detail: string, extra: ProblemExtra = {}): Problem {
  const { status, title, retryable } = errorCodes[code]
  return { type: problemType(code), title, status, detail, code, retryable, ...extra }
}

/** The fields of a problem that list the violations that a check found. */
export function listedViolations({ violations, total }: CheckFailure): ProblemExtra {
  const omitted = total - violations.length
  return omitted > 0 ? { errors: violations, errorsOmitted: omitted } : { errors: violations }
}
