/** A run of consecutive indexes. */
export interface IndexRun {
  first: number
  last: number
}

export type IndexRange = Readonly<IndexRun>

export function runsOf(indexes: readonly number[]): IndexRun[] {
  const runs: IndexRun[] = []
  for (const index of indexes.toSorted((a, b) => a - b)) {
    const run = runs.at(-1)
    if (run !== undefined && index === run.last + 1) run.last = index
    else runs.push({ first: index, last: index })
  }
  return runs
}

/** The indexes between the ranges, which were never called back. */
export function gapsBetween(ranges: readonly IndexRange[]): IndexRange[] {
  return ranges
    .slice(1)
    .map(({ first }, before) => ({ first: (ranges[before]?.last ?? 0) + 1, last: first - 1 }))
}
