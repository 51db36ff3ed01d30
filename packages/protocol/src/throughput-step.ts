/** How long one point of a task's history is. */
export const throughputSteps = ['minute', 'hour'] as const
export type ThroughputStep = (typeof throughputSteps)[number]

export const STEP_MILLIS: Readonly<Record<ThroughputStep, number>> = { minute: 60_000, hour: 3_600_000 }

/** Levels below this one have a history of their own. Those from here up are counted together, as this level. */
export const THROUGHPUT_LEVELS = 16

/** Minutes are kept for this long. Hours are kept for as long as the partitions of finished tasks. */
export const MINUTES_KEPT_MILLIS = 86_400_000

/** The most points in one answer. */
export const MAX_THROUGHPUT_POINTS = 2000
