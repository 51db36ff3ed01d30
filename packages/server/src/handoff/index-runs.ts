/** Indexes that follow one another without a gap. */
export interface IndexRun {
  first: number
  last: number
}

export function runsOf(indexes: readonly number[]): IndexRun[] {
  const runs: IndexRun[] = []
  for (const index of indexes.toSorted((a, b) => a - b)) {
    const run = runs.at(-1)
    if (run !== undefined && index === run.last + 1) run.last = index
    else runs.push({ first: index, last: index })
  }
  return runs
}
