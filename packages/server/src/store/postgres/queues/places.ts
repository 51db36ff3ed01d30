/** The tables that list who waits; see queues.ts. */
export type Queue = 'held' | 'ready' | 'due'

/**
 * In SQL: removes places from a queue. Queues swing between nearly empty and thousands of rows, so `places` selects where
 * they lie, one by one: a join could begin with the queue, which was planned when it was empty and has
 * thousands of dead entries now. Places are only written and removed, never changed, so they lie where they lay; a set in
 * `due` may be shrunk at the same moment, and is left over at worst (due-sets.ts).
 */
export const removeFrom = (queue: Queue, places: string) =>
  `DELETE FROM baton.${queue} WHERE ctid = ANY (ARRAY(${places}))`

/** In SQL: where the places of some rows `s` lie, for `removeFrom`. */
export const placesOf = (queue: Queue, rows: string, isPlace: string, lock = 'OFFSET 0') =>
  `SELECT q.ctid FROM ${rows} CROSS JOIN LATERAL (SELECT ctid FROM baton.${queue} WHERE ${isPlace} ${lock}) q`

/**
 * In SQL: of the places `q` of a queue, in their order, those partitions that still are in the state
 * of the queue, locked; who is locked by others is skipped. Lateral, or the planner that meets an
 * empty database begins with the partitions and keeps that plan when there are a million.
 */
export const lockedOf = (columns: string, stillThere: string) =>
  `CROSS JOIN LATERAL (
     SELECT ${columns} FROM baton.partition WHERE id = q.id AND ${stillThere} FOR UPDATE SKIP LOCKED
   ) p`

/** In SQL: whether the row of a partition still waits at the place `q`; a stray one is of another stay. See queues.ts. */
export const WAITS = "state = 'held' AND stay = q.stay"
