// All open work is in memory, so it has limits.

export const DEFAULT_MAX_LANES = 200_000
export const DEFAULT_MAX_LEASES = 250_000
export const MAX_LANES_OF_TASK = 10_000

export interface OpenWorkLimits {
  /** Lanes with waiting, delayed or leased partitions. Each further table of a lane counts as a tenth. */
  readonly lanes: number
  readonly lanesOfTask: number
  readonly leases: number
}

/** A task, and how many of the lanes in memory it has. */
export interface LanesOfTask {
  readonly taskId: string
  readonly lanes: number
}

/** Why new work is refused. */
export interface TooManyLanes {
  readonly kind: 'too_many_lanes'
  readonly most: number
  /** The tasks with most lanes. */
  readonly tasks: readonly LanesOfTask[]
}
