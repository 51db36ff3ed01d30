/** The length of one point of a task's history. */
export const throughputSteps = ['minute', 'hour'] as const
export type ThroughputStep = (typeof throughputSteps)[number]

export const STEP_MILLIS: Readonly<Record<ThroughputStep, number>> = { minute: 60_000, hour: 3_600_000 }

/**
 * Each level below this one has its own history. This level and all above it are counted together, as this
 * level.
 */
export const THROUGHPUT_LEVELS = 16

/**
 * Points of minutes are kept for this long. Points of hours are kept as long as the partitions of finished
 * tasks.
 */
export const MINUTES_KEPT_MILLIS = 86_400_000

/** The most points in one answer. */
export const MAX_THROUGHPUT_POINTS = 2000
