import type { IndexRange } from '../rules/index-runs.ts'

/** Numbers in ascending runs: returns what is left, at or after `from`, of the first run that is. */
export type NumberRuns = (from: number) => IndexRange | null

const MOST = Number.MAX_SAFE_INTEGER

export const everyNumber: NumberRuns = (from) => (from > MOST ? null : { first: from, last: MOST })

export const noNumber: NumberRuns = () => null

export const numbersWithin =
  ({ first, last }: IndexRange): NumberRuns =>
  (from) =>
    from > last ? null : { first: Math.max(from, first), last }

export const onlyNumber = (number: number): NumberRuns => numbersWithin({ first: number, last: number })

/** Numbers whose decimal digits begin with these: one run for each length. The first digit is not 0. */
export const numbersBeginningWith =
  (digits: string): NumberRuns =>
  (from) => {
    for (let first = Number(digits), width = 1; first <= MOST; first *= 10, width *= 10) {
      const last = Math.min(first + width - 1, MOST)
      if (from <= last) return { first: Math.max(from, first), last }
    }
    return null
  }

export const inBoth =
  (a: NumberRuns, b: NumberRuns): NumberRuns =>
  (from) => {
    let at = from
    while (true) {
      const ofA = a(at)
      const ofB = ofA === null ? null : b(ofA.first)
      if (ofA === null || ofB === null) return null
      if (ofB.first <= ofA.last) return { first: ofB.first, last: Math.min(ofA.last, ofB.last) }
      at = ofB.first
    }
  }
