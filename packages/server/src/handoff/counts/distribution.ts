/** From half a millisecond, which a commit takes at best, to ten seconds, after which nobody waits. */
export const DURATION_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]

/** How many values lay where, and their sum. Adding one costs a few nanoseconds: small values are found first. */
export class Distribution {
  /** Ascending; a value belongs to the first that it does not exceed. */
  readonly bounds: readonly number[]
  /** By bound, and at the end what exceeds them all. */
  readonly counts: number[]
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Array(bounds.length + 1).fill(0)
  }

  add(value: number): void {
    const { bounds, counts } = this
    let at = 0
    while (at < bounds.length && value > (bounds[at] as number)) at += 1
    counts[at] = (counts[at] as number) + 1
    this.sum += value
  }
}
