import type { Standing } from '../../handoff/settlement.ts'
import type { LaneEntry } from '../../handoff/task-entry.ts'

/** A partition's row with its lane, ready to be judged. */
export interface PartitionEntry extends Standing {
  readonly id: number
  readonly lane: LaneEntry
  readonly recordCount: number
}
