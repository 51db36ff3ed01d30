/** How much a view shows and reads, on every store: none costs more as a task grows. */

export const LANES_SHOWN = 1000
export const TABLES_SHOWN = 100
export const MISMATCHES_SHOWN = 100
/** For each lane. */
export const GAPS_SHOWN = 10
/** Of those that an instance has called back. */
export const PRODUCED_TASKS_SHOWN = 100
/** In the answer to a call-back. */
export const CONFLICTS_NAMED = 100

/** A search reads at most so many tasks per page, and says where it stopped. */
export const TASKS_SEARCHED = 5000
/** However few are wanted: a search for one of five thousand would look five thousand times. */
export const tasksReadAtATime = (limit: number, search: string | null) =>
  search === null ? limit : Math.max(limit, ROWS_AT_A_TIME)

/** A page of partitions reads at most so many rows, however few of them match, and so many at a time. */
export const ROWS_READ = 2000
export const ROWS_AT_A_TIME = 200
