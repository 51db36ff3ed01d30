// What an answer lists at most, so that none grows with what it tells of.

export const MAX_LISTED_LEVELS = 1000
export const MAX_LISTED_GAPS = 10
export const MAX_LISTED_TABLES = 100
export const MAX_LISTED_MISMATCHES = 100
/** The most tasks that a producer's record lists. */
export const MAX_PRODUCER_TASKS = 100
/** A body with everything wrong must not be answered with something larger than itself. */
export const MAX_LISTED_VIOLATIONS = 100
