import { paceOf } from '../../packages/server/src/handoff/views/eta.ts'
import { type Fleet, run } from './fleet.ts'

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
/** Shares of a task that are done; samples are grouped by them. */
export const shares = [
  { name: 'up to half', from: 0, to: 0.5 },
  { name: 'half to 90 %', from: 0.5, to: 0.9 },
  { name: 'the last tenth', from: 0.9, to: 1 },
] as const

export interface Errors {
  readonly median: number
  readonly p90: number
  /** The share of samples that had an estimate. */
  readonly estimated: number
}

const sizes = (count: number, records: number) => new Array<number>(count).fill(records)
const around = (millis: number) => (_records: number, random: () => number) => millis * (0.7 + 0.6 * random())
const byRecords = (records: number, random: () => number) => records * 2 * (0.8 + 0.4 * random())

/** As fleets are in practice: attempts take seconds, leases last five minutes. */
export const fleets: readonly Fleet[] = [
  { name: 'steady', workers: 8, partitions: sizes(400, 1000), ...lease(), attempt: around(5000) },
  {
    name: 'failing',
    workers: 8,
    partitions: sizes(400, 1000),
    ...lease(),
    attempt: around(5000),
    failing: 0.2,
  },
  {
    name: 'dying workers',
    workers: 12,
    partitions: sizes(400, 1000),
    ...lease(),
    attempt: around(5000),
    dyingAfter: [undefined, 38, undefined, 36, undefined, 34, 20, undefined] as number[],
  },
  {
    name: 'stragglers',
    workers: 8,
    partitions: sizes(400, 1000),
    ...lease(),
    attempt: (_records, random) => around(5000)(0, random) * (random() < 0.02 ? 20 : 1),
  },
  {
    name: 'stragglers that report progress',
    workers: 8,
    partitions: sizes(400, 1000),
    ...lease(),
    attempt: (_records, random) => around(5000)(0, random) * (random() < 0.02 ? 20 : 1),
    reportsEveryMillis: 5000,
  },
  {
    name: 'levels of different size',
    workers: 8,
    partitions: [...sizes(200, 500), ...sizes(100, 4000), ...sizes(12, 40_000)],
    ...lease(),
    attempt: byRecords,
  },
]

function lease() {
  return { leaseMillis: 300_000, backoffMillis: 10_000 }
}

/**
 * The factor by which an estimate was off, whether too short or too long. A difference of one second counts
 * as none.
 */
export function errorsOf(fleet: Fleet, by: 'pace' | 'attempts', seeds: readonly number[] = SEEDS): Errors[] {
  const found = shares.map(() => ({ errors: [] as number[], looks: 0 }))
  for (const seed of seeds) {
    const { looks, doneAt } = run(fleet, seed, 1000)
    for (const { at, share, row } of looks) {
      const bin = found[shares.findIndex(({ from, to }) => share >= from && share < to)]
      if (bin === undefined) continue
      bin.looks += 1
      const { timing: _timing, ...withoutAttempts } = row
      const { etaSeconds } = paceOf(by === 'pace' ? withoutAttempts : row, at)
      const left = (doneAt - at) / 1000
      if (etaSeconds !== null)
        bin.errors.push((Math.max(etaSeconds, left) + 1) / (Math.min(etaSeconds, left) + 1))
    }
  }
  return found.map(({ errors, looks }) => ({
    median: quantile(errors, 0.5),
    p90: quantile(errors, 0.9),
    estimated: looks === 0 ? 0 : errors.length / looks,
  }))
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
