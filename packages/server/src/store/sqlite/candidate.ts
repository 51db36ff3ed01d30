import type { LaneEntry } from './entries.ts'

/** A partition that is ready, with all that handing it out takes. */
export interface Candidate {
  readonly id: number
  readonly lane: LaneEntry
  readonly idx: number
  readonly term: number
  readonly attempts: number
  readonly releases: number
  readonly spelling: string | null
  readonly recordCount: number
  readonly computeTable: number
  readonly rank: bigint
  readonly fresh: boolean
}

/** The order of the hand-off. */
export function compareCandidates(a: Candidate, b: Candidate): number {
  if (a.lane.level !== b.lane.level) return a.lane.level - b.lane.level
  if (a.rank !== b.rank) return a.rank < b.rank ? -1 : 1
  return a.id - b.id
}
