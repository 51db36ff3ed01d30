import { cost } from '../../../handoff/rules/fair-order.ts'
import { clock, finishing, setsLeft } from '../leases/settle-plain.ts'
import { enterSets, NEXT_SET } from '../queues/due-sets.ts'
import { removeFrom } from '../queues/places.ts'
import { besideId } from '../rows/beside-ids.ts'
import { statement } from '../session/statement.ts'
import { front } from './claim.ts'
import { keysAreFree, keysRemembered } from './pull-keys.ts'

const LEAST_COST = cost(0)
const LARGEST_COST = cost(Number.MAX_SAFE_INTEGER)

/**
 * Nearly every batch is pulls and settles of finished work and nothing else. It is one statement and
 * so one round trip, which commits by itself: finish, claim, lease and count.
 *
 * What a small batch costs the server is mostly the setting up of its statement, so each part does without
 * joins and does not count what it cannot have: an array is made of what was found and looked up by the next part.
 */

/** In SQL: the parameters from the given one on. */
const parametersFrom = (first: number, types: readonly string[]) =>
  types.map((type, at) => `$${first + at}::${type}`)

/** Where pulls have keys: the key of each pull, and the place of its first secret. */
const KEY_TYPES = ['text[]', 'bigint[]'] as const
const CLAIM_TYPES = ['bigint', 'text[]', 'bigint[]', 'int', 'float8', 'float8', 'float8', 'text'] as const

/**
 * Secrets and holders are numbered in the order of the hand-off, partitions are changed in that of their ids. If any
 * turns out not to be ready, the places of all stay and are removed apart.
 */
function claiming(first: number, conditions: readonly string[]): string {
  const [wanted, secrets, holders, largestSet, base, perThousand, most, to] = parametersFrom(
    first,
    CLAIM_TYPES,
  )
  const limit =
    conditions.length === 0 ? wanted : `CASE WHEN ${conditions.join(' AND ')} THEN ${wanted} ELSE 0 END`
  const stay = besideId('(SELECT stays FROM granted)', '(SELECT ids FROM granted)')
  return `candidate AS MATERIALIZED (
     ${front('r.ctid AS place, r.id, r.lane, r.rank, r.stay, r.fresh, r.refill')} LIMIT ${limit} FOR UPDATE SKIP LOCKED
   ), granted AS MATERIALIZED (
     SELECT array_agg(id) AS ids, array_agg(position) AS positions, array_agg(rank) AS ranks, array_agg(stay) AS stays,
       array_agg(fresh) AS freshes, ${NEXT_SET} AS first_set
     FROM (SELECT id, rank, stay, fresh, row_number() OVER () AS position FROM candidate ORDER BY id) c
   ), leased AS (
     UPDATE baton.partition p SET state = ${to}, term = p.term + 1, outcome = NULL, leased_at = (SELECT now FROM clock),
       due_at = (SELECT now FROM clock) + floor(least(${base} + ${perThousand} * p.record_count / 1000, ${most}) + 0.5)::bigint,
       (rank, fresh, secret, holder, due_with) = (
         SELECT ranks[at], freshes[at], (${secrets})[positions[at]], (${holders})[positions[at]], first_set + (positions[at] - 1) / ${largestSet}
         FROM (SELECT width_bucket(p.id, ids) AS at, g.* FROM granted g OFFSET 0) g
       )
     WHERE p.id = ANY ((SELECT ids FROM granted)::bigint[]) AND p.state = 'held' AND p.stay = ${stay}
     RETURNING p.id, p.lane, p.level, p.rank, p.fresh, p.idx, p.term, p.attempts, p.record_count, p.spelling, p.compute_table,
       p.due_at, p.due_with, p.holder, p.secret
   ), taken AS (
     ${removeFrom(
       'ready',
       `SELECT place FROM candidate
        WHERE cardinality((SELECT ids FROM granted)) = cardinality(ARRAY(SELECT id FROM leased))`,
     )}
   ), queued AS (
     ${enterSets('leased')}
   )`
}

const settled = `settled AS MATERIALIZED (
     SELECT cardinality(ARRAY(SELECT id FROM finished)) = cardinality($2::bigint[]) AS complete,
       EXISTS (SELECT FROM concerned WHERE level_barrier) AS may_open
   )`

const countingFinished = `counted_finished AS (
     INSERT INTO baton.count_delta (task, lane, level, at, second, finished_partitions, finished_records,
       leased_partitions, leased_records, done_partitions, done_records, reported_declared, reported_records, mismatched)
     SELECT (SELECT task FROM concerned c WHERE c.lane = f.lane), lane, level, (SELECT now FROM clock),
       (SELECT now FROM clock) / 1000, partitions, records, -partitions, -records, partitions, records,
       declared, least(reported, CASE WHEN reported IS NOT NULL THEN ${Number.MAX_SAFE_INTEGER} END), nullif(mismatched, 0)
     FROM (
       SELECT lane, level, count(*) AS partitions, sum(record_count)::bigint AS records,
         sum(record_count) FILTER (WHERE reported IS NOT NULL) AS declared, sum(reported) AS reported,
         count(*) FILTER (WHERE reported <> record_count) AS mismatched
       FROM finished GROUP BY lane, level
     ) f
   )`
const countingGiven = `counted_given AS (
     INSERT INTO baton.count_delta (task, lane, level, at, ready_partitions, ready_records, leased_partitions, leased_records,
       virtual, served)
     SELECT (SELECT task FROM baton.lane l WHERE l.id = g.lane), lane, level, (SELECT now FROM clock), -partitions, -records,
       partitions, records, virtual, served
     FROM (
       SELECT lane, level, count(*) AS partitions, sum(record_count)::bigint AS records, max(rank) FILTER (WHERE fresh) AS virtual,
         max(rank + least(greatest(record_count, ${LEAST_COST}), ${LARGEST_COST})) FILTER (WHERE fresh) AS served
       FROM leased GROUP BY lane, level
     ) g
   )`

const settledAnswer = `now, may_open, ${setsLeft} AS sets_left,
     CASE WHEN NOT complete THEN ARRAY(SELECT id FROM finished) END AS finished`
const foundAnswer = `(SELECT coalesce(cardinality(ids), 0) FROM granted) AS found,
     ARRAY(SELECT lane FROM candidate WHERE refill) AS tripped`

const LEASED_COLUMNS = {
  ...{
    id: 'bigint',
    lane: 'bigint',
    level: 'bigint',
    idx: 'bigint',
    term: 'int',
    attempts: 'int',
    record_count: 'bigint',
  },
  ...{ spelling: 'text', compute_table: 'bigint', secret: 'text' },
}

/**
 * In SQL: what the statement tells once, and then a row for each lease. What is told once would be sent, and read by the
 * node, with each of them otherwise: six columns of seventeen.
 */
const answer = (once: string, columns: number, from: string) =>
  `SELECT ${once}, ${Object.entries(LEASED_COLUMNS)
    .map(([column, type]) => `NULL::${type} AS ${column}`)
    .join(', ')} FROM ${from}
   UNION ALL SELECT ${'NULL, '.repeat(columns)}${Object.keys(LEASED_COLUMNS).join(', ')} FROM leased`

const granted = (column: string) => `(SELECT ${column} FROM granted)`

/** In SQL: what the keys of pulls add to a statement. */
interface Keying {
  readonly before: string
  readonly conditions: readonly string[]
  readonly after: string
  readonly answer: string
  readonly parameters: number
}

/** For a claim whose parameters end before the given one. */
function keying(first: number): Keying {
  const [keys = '', starts] = parametersFrom(first, KEY_TYPES)
  const position = besideId(granted('positions'), granted('ids'))
  return {
    before: `${keysAreFree(keys)}, `,
    conditions: ['(SELECT free FROM keys)'],
    after: `, ${keysRemembered(`(${keys})[width_bucket(${position}, ${starts})]`)}`,
    answer: `(SELECT free FROM keys) AS keys_free`,
    parameters: KEY_TYPES.length,
  }
}
const NO_KEYS: Keying = { before: '', conditions: [], after: '', answer: 'true AS keys_free', parameters: 0 }

/**
 * Nothing is claimed when a settlement turns out not to be plain or may open a level: what it makes
 * ready belongs to the pulls of the batch, so these follow in a transaction of their own. So do pulls one of whose keys is
 * known or under way elsewhere.
 */
const settling = (name: string, by: 'partitions' | 'lanes', first: number) => {
  const afterClaim = first + CLAIM_TYPES.length
  const both = (suffix: string, keys: Keying) =>
    statement(
      `hand-off-plain${name}${suffix}`,
      `WITH ${finishing(by, afterClaim + keys.parameters)}, ${settled}, ${keys.before}
       ${claiming(first, ['(SELECT complete AND NOT may_open FROM settled)', ...keys.conditions])},
       ${countingFinished}, ${countingGiven}${keys.after}
       ${answer(`${settledAnswer}, ${foundAnswer}, ${keys.answer}`, 7, 'clock, settled')}`,
    )
  return {
    both: both('', NO_KEYS),
    bothKeyed: both('-keyed', keying(afterClaim)),
    settles: statement(
      `hand-off-plain-settles${name}`,
      `WITH ${finishing(by, first)}, ${settled}, ${countingFinished} SELECT ${settledAnswer} FROM clock, settled`,
    ),
  }
}
const pulling = (suffix: string, keys: Keying) =>
  statement(
    `hand-off-plain-pulls${suffix}`,
    `WITH ${clock(2 + CLAIM_TYPES.length + keys.parameters)}, ${keys.before}
     ${claiming(2, keys.conditions)}, ${countingGiven}${keys.after}
     ${answer(`now, ${foundAnswer}, ${keys.answer}`, 4, 'clock')}`,
  )

/** Setting up what is not asked for would cost a small batch as much as its work. */
export const plainHandOffs = {
  lanesUnknown: settling('', 'partitions', 11),
  lanesKnown: settling('-of-lanes', 'lanes', 12),
  pulls: pulling('', NO_KEYS),
  pullsKeyed: pulling('-keyed', keying(2 + CLAIM_TYPES.length)),
}

/** After a commit whose answer got lost: the leases are known by their secrets. */
export const leasesGiven = statement(
  'leases-given',
  `SELECT p.secret, p.id, p.lane, p.level, p.idx, p.term, p.attempts, p.record_count,
     p.spelling, p.compute_table, p.leased_at AS now
   FROM (SELECT unnest(ids) AS id FROM baton.due WHERE NOT delayed ORDER BY due_at OFFSET 0) q
   CROSS JOIN LATERAL (SELECT * FROM baton.partition WHERE id = q.id AND secret = ANY($1::text[]) OFFSET 0) p`,
)
