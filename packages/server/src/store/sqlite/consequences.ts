import type { LaneEntry } from '../../handoff/rules/task-entry.ts'

/** What a transaction brings about besides its answers, gathered on the way. Each has its own. */
export interface Consequences {
  /** New partitions that are ready at once. */
  readied: number
  /** The lanes that a partition was given back to, to be handed out again as soon as the lane is open. */
  readonly returnedTo: LaneEntry[]
  /** The earliest expiry of a lease that was renewed, or end of a back-off. */
  earliestDueAt: number | null
  /** Partitions that were parked. */
  readonly parked: number[]
}

export const noConsequences = (): Consequences => ({
  readied: 0,
  returnedTo: [],
  earliestDueAt: null,
  parked: [],
})
