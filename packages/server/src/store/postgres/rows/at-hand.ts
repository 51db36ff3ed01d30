import { setTimeout as sleep } from 'node:timers/promises'

/** Settlements hold their rows for some milliseconds. */
const LOCKED_MILLIS = 10

/**
 * In SQL: locks the partitions of a page `q`, in its order, and waits for nobody. Of one that somebody else has locked
 * the columns are null: whoever goes on behind it has to come back for it.
 */
export const lockAtHand = (page: string, columns: string, isMeant: string) =>
  `SELECT q.*, p.* FROM (${page}) q LEFT JOIN LATERAL (
     SELECT ${columns} FROM baton.partition WHERE id = q.row AND ${isMeant} FOR UPDATE SKIP LOCKED
   ) p ON true`

/**
 * For after a step that found nothing but rows of others: the next one follows at once, and each holds the roller's lock.
 */
export const untilOthersAreThrough = (): Promise<void> => sleep(LOCKED_MILLIS)
