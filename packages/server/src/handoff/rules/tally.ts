import { type PartitionState, partitionStates, unfinishedStates } from './life-cycle.ts'

/** So many of each state: counted in partitions, or added up in records. */
export type Tally = Record<PartitionState, number>

/** The same partitions, counted both ways. */
export interface Tallies {
  readonly partitions: Tally
  readonly records: Tally
}

export const emptyTally = (): Tally => ({
  ready: 0,
  held: 0,
  leased: 0,
  delayed: 0,
  parked: 0,
  done: 0,
  cancelled: 0,
})

export const noTallies = (): Tallies => ({ partitions: emptyTally(), records: emptyTally() })

export const totalOf = (tally: Tally): number => partitionStates.reduce((sum, state) => sum + tally[state], 0)

export const unfinishedOf = (tally: Tally): number =>
  unfinishedStates.reduce((sum, state) => sum + tally[state], 0)

/** How many are done, if all of them are. */
export const finishedOf = (tally: Tally): number | null =>
  tally.done > 0 && tally.cancelled === 0 && unfinishedOf(tally) === 0 ? tally.done : null

/**
 * For sums of what clients report, which nothing bounds: they stop at the largest number that every
 * reader, a database driver among them, can still take.
 */
export const addCapped = (a: number, b: number): number => Math.min(a + b, Number.MAX_SAFE_INTEGER)
