import type { Policy } from '../../handoff/policy.ts'
import { removeFrom } from './places.ts'

/**
 * Leases that one pull was given and that end at the same time stand in `due` as one set, under a number that their
 * rows have as well (`due_with`). A place for each of them was 8 to 12 of 56 to 68 microseconds of the server per
 * partition, pulled and settled in batches of 50.
 *
 * Who ends leases has locked their rows, and takes them from what is `remaining` of their sets. Who ends all that
 * remain removes the set, and meets nobody there. Who ends some of them would meet others, and whoever waits there with
 * rows locked waits in circles: so hand-offs take theirs off after the commit (shrinking.ts), and transactions pass
 * over a set that is locked. What remains is never too few by that. Which partitions they are, their rows alone say;
 * a set that is left over holds nobody up and goes when its time has come.
 */

/** In SQL: a number that no other set has, and the next ones for the other sets of a claim. */
export const NEXT_SET = "nextval('baton.due_number')"

/** When one lease of a set ends alone, the set is written once more. */
const LARGEST_SET = 64

/** Which set of its claim each partition is due with, for pulls of so many partitions each. */
export function setsWithin(pulls: readonly number[], { leaseMillisPerThousandRecords }: Policy): number[] {
  const largest = leaseMillisPerThousandRecords === 0 ? LARGEST_SET : 1
  let sets = 0
  return pulls.flatMap((size) => {
    const first = sets
    sets += Math.ceil(size / largest)
    return Array.from({ length: size }, (_, at) => first + Math.floor(at / largest))
  })
}

/** Whether the leases of a claim are each in a set of their own, or some of them together. */
export type Sets = 'each' | 'together'

export const kindOf = (sets: readonly number[]): Sets =>
  (sets.at(-1) ?? -1) === sets.length - 1 ? 'each' : 'together'

/**
 * In SQL: a statement that writes the sets of what was leased in one claim. Where each lease has one of its own there
 * is nothing to group, which a small batch notices: 11 % of what eight pulls and eight settles cost the server.
 */
export const enterSets = (leased: string, of: Sets) =>
  `INSERT INTO baton.due (delayed, due_at, number, holder, remaining, ids)
   SELECT false, due_at, due_with, holder, ${
     of === 'each'
       ? `1, ARRAY[id] FROM ${leased}`
       : `count(*), array_agg(id) FROM ${leased} GROUP BY due_at, due_with, holder`
   }`

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

/** In SQL: sets that these rows were not the last of, and those that were written after the statement began. */
export const setsLeft = `ARRAY(
     SELECT due_at || ' ' || due_with || ' ' || leases FROM leaving_set WHERE remaining IS NULL OR remaining > leases)`

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
