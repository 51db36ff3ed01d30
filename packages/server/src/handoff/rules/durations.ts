/** A sparse histogram of (bucket, count): two buckets per doubling, so quantiles are a fifth off at most. */
export type Durations = number[]

const PER_DOUBLING = 2

const bucketOf = (millis: number): number =>
  millis < 1 ? 0 : Math.floor(PER_DOUBLING * Math.log2(millis)) + 1

/** The geometric middle of a bucket. */
const lengthOf = (bucket: number): number => (bucket === 0 ? 0.5 : 2 ** ((bucket - 0.5) / PER_DOUBLING))

/** Updates the list in place. */
export function countDuration(durations: Durations, millis: number): void {
  const bucket = bucketOf(millis)
  let at = 0
  while (at < durations.length && (durations[at] as number) < bucket) at += 2
  if (durations[at] === bucket) durations[at + 1] = (durations[at + 1] as number) + 1
  else durations.splice(at, 0, bucket, 1)
}

export function countOf(durations: readonly number[]): number {
  let count = 0
  for (let at = 1; at < durations.length; at += 2) count += durations[at] as number
  return count
}

export function sumOf(durations: readonly number[]): number {
  let sum = 0
  for (let at = 0; at < durations.length; at += 2)
    sum += lengthOf(durations[at] as number) * (durations[at + 1] as number)
  return sum
}

/** In milliseconds; null if nothing was counted. */
export function quantileOf(durations: readonly number[], share: number): number | null {
  let left = countOf(durations) * share
  for (let at = 0; at < durations.length; at += 2) {
    left -= durations[at + 1] as number
    if (left <= 0) return lengthOf(durations[at] as number)
  }
  return null
}

export function longestOf(durations: readonly number[]): number {
  const bucket = durations.at(-2)
  return bucket === undefined ? 0 : lengthOf(bucket)
}
