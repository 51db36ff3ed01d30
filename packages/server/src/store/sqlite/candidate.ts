import type { LaneEntry } from '../../handoff/rules/task-entry.ts'

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

/** Of a partition's row: what handing it out takes, whoever ranks it. */
export const CANDIDATE_COLUMNS = 'record_count, id, idx, term, attempts, releases, spelling, compute_table'

/** In the order of the columns. */
export type CandidateRow = [
  recordCount: number,
  id: number,
  idx: number,
  term: number,
  attempts: number,
  releases: number,
  spelling: string | null,
  computeTable: number,
]

export function candidateOf(row: CandidateRow, lane: LaneEntry, rank: bigint, fresh: boolean): Candidate {
  const [recordCount, id, idx, term, attempts, releases, spelling, computeTable] = row
  return { id, lane, idx, term, attempts, releases, spelling, recordCount, computeTable, rank, fresh }
}
