/** The middle value, or the mean of the two middle values if their number is even. */
export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/**
 * The mean of the middle half of the values. Unlike the mean, it does not depend on a few extreme values; of
 * small samples, it varies less than the median.
 */
export function middleMean(values: readonly number[]): number {
  const quarter = values.length >> 2
  const middle = [...values].sort((a, b) => a - b).slice(quarter, values.length - quarter)
  return middle.reduce((sum, value) => sum + value, 0) / middle.length
}

export interface Spread {
  median: number
  min: number
  max: number
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}

/** Nearest-rank percentile of values that are already sorted. */
function percentile(sorted: ArrayLike<number>, share: number): number {
  if (sorted.length === 0) return Number.NaN
  const rank = Math.max(1, Math.ceil(share * sorted.length))
  return sorted[rank - 1] ?? Number.NaN
}

export interface LatencySummary {
  p50Ms: number
  p99Ms: number
  maxMs: number
}

/**
 * Collects one duration per request in a growing typed array: at this rate of samples, a plain array of
 * numbers would show up in the load client's own profile.
 */
export class LatencySamples {
  #samples = new Float64Array(1 << 16)
  #count = 0

  add(milliseconds: number): void {
    if (this.#count === this.#samples.length) {
      const larger = new Float64Array(this.#samples.length * 2)
      larger.set(this.#samples)
      this.#samples = larger
    }
    this.#samples[this.#count++] = milliseconds
  }

  summary(): LatencySummary {
    const sorted = this.#samples.slice(0, this.#count).sort()
    return {
      p50Ms: percentile(sorted, 0.5),
      p99Ms: percentile(sorted, 0.99),
      maxMs: percentile(sorted, 1),
    }
  }
}
