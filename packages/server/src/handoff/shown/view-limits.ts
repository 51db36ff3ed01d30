import type { TaskQuery } from './task-record.ts'

/** How much a view reads, on every store: none costs more as a task grows. How much it shows, the protocol says. */

/** A search, also one for a state among those with parked partitions, reads at most so many tasks per page, and says where it stopped. */
export const TASKS_SEARCHED = 5000
/** However few are wanted: a search for one of five thousand would look five thousand times. */
export const tasksReadAtATime = ({ state, parked, search, limit, tables }: TaskQuery) =>
  search === null && tables == null && !(parked && state !== null) ? limit : Math.max(limit, ROWS_AT_A_TIME)

/** A page of partitions reads at most so many rows, however few of them match, and so many at a time. */
export const ROWS_READ = 2000
export const ROWS_AT_A_TIME = 200
