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

/** How much open work the tasks of one producer may have. */
export interface OwnerLimits {
  readonly openTasks: number
  readonly waitingPartitions: number
}

export const DEFAULT_OWNER_LIMITS: OwnerLimits = { openTasks: 1000, waitingPartitions: 10_000_000 }

/** Why new work of a producer is refused. */
export interface OwnerLimited {
  readonly kind: 'owner_limited'
  readonly limit: keyof OwnerLimits
  readonly most: number
  readonly used: number
}

export interface LanesOfTask {
  readonly taskId: string
  readonly lanes: number
}

/** Why new work is refused. */
export interface TooManyLanes {
  readonly kind: 'too_many_lanes'
  readonly most: number
  readonly tasks: readonly LanesOfTask[]
}
