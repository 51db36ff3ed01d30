import { type ErrorCode, errorCodes } from './error-codes.ts'

/** The codes that can be the answer to a request; the others stand inside a `refused` list. */
export type ProblemCode = {
  [C in ErrorCode]: (typeof errorCodes)[C]['status'] extends number ? C : never
}[ErrorCode]

export const problemCodes = (Object.keys(errorCodes) as ErrorCode[]).filter(
  (code): code is ProblemCode => errorCodes[code].status !== null,
)
