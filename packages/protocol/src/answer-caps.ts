// What an answer lists at most, so that none grows with what it tells of.

export const MAX_LISTED_LEVELS = 1000
export const MAX_LISTED_GAPS = 10
export const MAX_LISTED_TABLES = 100
export const MAX_LISTED_MISMATCHES = 100
/** The latest attempts of a partition. */
export const MAX_LISTED_ATTEMPTS = 10
/** Partitions that take much longer than others of their task. */
export const MAX_LISTED_STRAGGLERS = 10
/** Reasons for which attempts of a task came to nothing. */
export const MAX_LISTED_FAILURES = 20
/** The most tasks that a producer's record lists. */
export const MAX_PRODUCER_TASKS = 100
/** Pending deliveries of a subscription are counted up to here. */
export const MAX_COUNTED_DELIVERIES = 10_000
/** A body with everything wrong must not be answered with something larger than itself. */
export const MAX_LISTED_VIOLATIONS = 100
