import type { Standing } from '../../handoff/rules/settlement.ts'
import type { LaneEntry } from '../../handoff/rules/task-entry.ts'

/** A partition's row with its lane, ready to be judged. */
export interface PartitionEntry extends Standing {
  readonly id: number
  readonly lane: LaneEntry
  readonly recordCount: number
}
