export interface IndexRun {
  first: number
  last: number
}

export type IndexRange = Readonly<IndexRun>

export function runsOf(indexes: readonly number[]): IndexRun[] {
  const runs: IndexRun[] = []
  for (const index of indexes.toSorted((a, b) => a - b)) addRun(runs, index, index)
  return runs
}

/** Extends the last run if the added one begins within it or right after it. */
export function addRun(runs: IndexRun[], first: number, last: number): void {
  const run = runs.at(-1)
  if (run !== undefined && first >= run.first && first <= run.last + 1) run.last = Math.max(run.last, last)
  else runs.push({ first, last })
}

/** Ranges in any order, with those united that overlap or are adjacent. */
export function unitedRuns(ranges: readonly IndexRange[]): IndexRun[] {
  const runs: IndexRun[] = []
  for (const { first, last } of ranges.toSorted((a, b) => a.first - b.first)) addRun(runs, first, last)
  return runs
}

/** The indexes between the ranges, which were never called back. */
export function gapsBetween(ranges: readonly IndexRange[]): IndexRange[] {
  return ranges
    .slice(1)
    .map(({ first }, before) => ({ first: (ranges[before]?.last ?? 0) + 1, last: first - 1 }))
}
