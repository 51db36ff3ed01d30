import type { Policy } from '../../../handoff/rules/policy.ts'
import { removeFrom } from './places.ts'

/**
 * Leases that one claim gave and that end at the same time stand in `due` as one set, whoever has them, under a number
 * that their rows have as well (`due_with`). A place for each of them was 8 to 12 of 56 to 68 microseconds of the server
 * per partition, pulled and settled in batches of 50.
 *
 * A set says when to look at which partitions; whether their leases still run, their rows alone say. So that it goes
 * when nobody needs it any more, leases that end are taken from what is `remaining` of it. Waiting there with rows
 * locked would deadlock: so hand-offs take theirs off after the commit (shrinking.ts), and transactions pass over a
 * set that is locked, unless they remove it: who shrinks it then waits for nobody. What remains is never too few by that.
 * A set that is left over holds nobody up and goes when its time has come.
 */

/** In SQL: a number that no other set has, and the next ones for the other sets of a claim. */
export const NEXT_SET = "nextval('baton.due_number')"
/** The most sets that one claim may number: the sequence goes on by 512. */
export const SETS_AT_ONCE = 500

/** Leases that end at the same time are due together, up to so many: whoever looks at the set looks at each of them. */
const LARGEST_SET = 64

/** The most leases of one claim that are due together. Where records decide how long they run they hardly ever are. */
export function largestSet({ leaseMillisPerThousandRecords }: Policy): number {
  return leaseMillisPerThousandRecords === 0 ? LARGEST_SET : 1
}

/** In SQL: a statement that writes the sets of what was leased in one claim. */
export const enterSets = (leased: string) =>
  `INSERT INTO baton.due (delayed, due_at, number, holders, remaining, ids)
   SELECT false, due_at, due_with, array_agg(holder), count(*), array_agg(id) FROM ${leased} GROUP BY due_at, due_with`

/** In SQL: the sets that some rows leave, which have `delayed`, `due_at` and `due_with`, and what remains of each. */
const leavingSets = (rows: string) =>
  `SELECT s.*, q.place, q.remaining FROM (
     SELECT delayed, due_at, due_with, count(*)::int AS leases FROM ${rows} GROUP BY delayed, due_at, due_with
   ) s LEFT JOIN LATERAL (
     SELECT ctid AS place, remaining FROM baton.due
     WHERE delayed = s.delayed AND due_at = s.due_at AND number = s.due_with OFFSET 0
   ) q ON true`

/** In SQL: parts of a statement that remove the sets which these rows are the last of. The others are still `leaving`. */
export const leaveSets = (rows: string) =>
  `leaving_set AS MATERIALIZED (
     ${leavingSets(rows)}
   ), ended AS (
     ${removeFrom('due', 'SELECT place FROM leaving_set WHERE remaining <= leases')}
   )`

/** In SQL: the sets that some rows have left, each with how many of them, for shrinking.ts. */
export const setsLeftBy = (rows: string) =>
  `ARRAY(SELECT due_at || ' ' || due_with || ' ' || count(*) FROM ${rows} GROUP BY due_at, due_with)`

/** In SQL: a part of a statement that takes rows off those of their sets that nobody has locked. */
export const shrinkSets = `shrunk AS (
     UPDATE baton.due SET remaining = remaining -
       (ARRAY(SELECT leases FROM leaving_set))[array_position(ARRAY(SELECT due_with FROM leaving_set), number)]
     WHERE ctid = ANY (ARRAY(
       SELECT q.ctid FROM leaving_set s CROSS JOIN LATERAL (
         SELECT ctid FROM baton.due WHERE delayed = s.delayed AND due_at = s.due_at AND number = s.due_with FOR UPDATE SKIP LOCKED
       ) q WHERE s.remaining > s.leases
     ))
   )`
