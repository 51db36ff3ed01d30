import { cost } from '../../handoff/fair-order.ts'
import { besideId } from './beside-ids.ts'
import { front } from './claim.ts'
import { removeFrom } from './queues.ts'
import { finishing } from './settle-plain.ts'
import { NOW, statement } from './statement.ts'

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

const CLAIM_TYPES = ['bigint', 'text[]', 'bigint[]', 'float8', 'float8', 'float8', 'text'] as const

/** The places of those who turn out not to be ready stay, and with them those of the others: they are removed apart. */
function claiming(first: number, isAllowed: string | null): string {
  const [wanted, secrets, holders, base, perThousand, most, to] = parametersFrom(first, CLAIM_TYPES)
  const limit =
    isAllowed === null ? wanted : `(SELECT CASE WHEN ${isAllowed} THEN ${wanted} ELSE 0 END FROM settled)`
  const granted = (column: string) => besideId(`(SELECT ${column} FROM granted)`, '(SELECT ids FROM granted)')
  return `candidate AS MATERIALIZED (
     ${front('r.ctid AS place, r.id, r.rank')} LIMIT ${limit} FOR UPDATE SKIP LOCKED
   ), granted AS MATERIALIZED (
     SELECT array_agg(id ORDER BY id) AS ids, array_agg(rank ORDER BY id) AS ranks,
       array_agg(position ORDER BY id) AS positions, array_agg(place) AS places
     FROM (SELECT place, id, rank, row_number() OVER () AS position FROM candidate) c
   ), leased AS (
     UPDATE baton.partition p SET state = ${to}, term = p.term + 1, outcome = NULL,
       secret = (${secrets})[${granted('positions')}], holder = (${holders})[${granted('positions')}],
       due_at = now + floor(least(${base} + ${perThousand} * p.record_count / 1000, ${most}) + 0.5)::bigint, leased_at = now
     FROM clock
     WHERE p.id = ANY ((SELECT ids FROM granted)::bigint[]) AND p.state = 'ready' AND p.rank = ${granted('ranks')}
     RETURNING p.id, p.lane, p.level, p.rank, p.idx, p.fresh, p.refill, p.term, p.attempts, p.record_count, p.spelling,
       p.compute_table, p.due_at, p.holder, p.secret
   ), taken AS (
     ${removeFrom('ready', 'SELECT unnest(places) FROM granted WHERE cardinality(ids) = (SELECT count(*) FROM leased)')} RETURNING id
   ), queued AS (
     INSERT INTO baton.due (delayed, due_at, id, holder) SELECT false, due_at, id, holder FROM leased
   ), given_of_lane AS MATERIALIZED (
     SELECT lane, level, count(*) AS partitions, sum(record_count)::bigint AS records, max(rank) FILTER (WHERE fresh) AS virtual,
       max(rank + least(greatest(record_count, ${LEAST_COST}), ${LARGEST_COST})) FILTER (WHERE fresh) AS served
     FROM leased GROUP BY lane, level
   )`
}

const finishingByLane = `${finishing}, finished_of_lane AS MATERIALIZED (
     SELECT lane, level, count(*) AS partitions, sum(record_count)::bigint AS records,
       sum(record_count) FILTER (WHERE reported IS NOT NULL) AS declared,
       CASE WHEN sum(reported) > ${Number.MAX_SAFE_INTEGER} THEN ${Number.MAX_SAFE_INTEGER} ELSE sum(reported) END AS reported,
       nullif(count(*) FILTER (WHERE reported <> record_count), 0) AS mismatched
     FROM finished GROUP BY lane, level
   ), settled AS MATERIALIZED (
     SELECT coalesce(sum(partitions), 0) = cardinality($2::bigint[]) AS complete,
       coalesce(bool_or((SELECT level_barrier FROM concerned c WHERE c.lane = f.lane)), false) AS may_open
     FROM finished_of_lane f
   )`

const counting = (...counts: string[]) => `counted AS (
     INSERT INTO baton.count_delta (task, lane, level, at, leased_partitions, leased_records, second, finished_partitions,
       finished_records, done_partitions, done_records, reported_declared, reported_records, mismatched,
       ready_partitions, ready_records, virtual, served)
     ${counts.join(' UNION ALL ')}
   )`
const finishedCounts = `SELECT (SELECT task FROM concerned c WHERE c.lane = f.lane), lane, level, now, -partitions, -records,
       now / 1000, partitions, records, partitions, records, declared::bigint, reported::bigint, mismatched,
       NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint
     FROM clock, finished_of_lane f`
const givenCounts = `SELECT (SELECT task FROM baton.lane l WHERE l.id = g.lane), lane, level, now, partitions, records,
       NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
       -partitions, -records, virtual, served
     FROM clock, given_of_lane g`

/** The mark of the connection, by the last two parameters; see transactions.ts. */
const marking = (first: number) =>
  `marked AS (UPDATE baton.commit_mark SET number = $${first + 1}, marked_at = ${NOW} WHERE session = $${first})`

const settledAnswer = `now, may_open, (SELECT count(*) FROM ended) AS ended,
     CASE WHEN NOT complete THEN ARRAY(SELECT id FROM finished) END AS finished`
const takenAnswer = `(SELECT count(*) FROM taken) AS taken, (SELECT coalesce(cardinality(ids), 0) FROM granted) AS found`
const leasedAnswer = `l.id, l.lane, l.level, l.idx, l.refill, l.term, l.attempts, l.record_count, l.spelling, l.compute_table,
     l.secret`

/**
 * Nothing is claimed when a settlement turns out not to be plain or may open a level: what it makes
 * ready belongs to the pulls of the batch, so these follow in a transaction of their own.
 */
const both = statement(
  'hand-off-plain',
  `WITH ${finishingByLane}, ${claiming(11, 'complete AND NOT may_open')}, ${counting(finishedCounts, givenCounts)}, ${marking(18)}
   SELECT s.*, ${leasedAnswer} FROM (SELECT ${settledAnswer}, ${takenAnswer} FROM clock, settled) s LEFT JOIN leased l ON true`,
)
const settles = statement(
  'hand-off-plain-settles',
  `WITH ${finishingByLane}, ${counting(finishedCounts)}, ${marking(11)} SELECT ${settledAnswer} FROM clock, settled`,
)
const pulls = statement(
  'hand-off-plain-pulls',
  `WITH clock AS MATERIALIZED (SELECT coalesce($1::bigint, ${NOW}) AS now), ${claiming(2, null)}, ${counting(givenCounts)}, ${marking(9)}
   SELECT s.*, ${leasedAnswer} FROM (SELECT now, ${takenAnswer} FROM clock) s LEFT JOIN leased l ON true`,
)

/** Setting up what is not asked for would cost a small batch as much as its work. */
export const plainHandOffs = { both, settles, pulls }

/** After a commit whose answer got lost: the leases are known by their secrets. */
export const leasesGiven = statement(
  'leases-given',
  `SELECT p.secret, p.id, p.lane, p.level, p.idx, false AS refill, p.term, p.attempts, p.record_count,
     p.spelling, p.compute_table, p.leased_at AS now
   FROM (SELECT id FROM baton.due WHERE NOT delayed ORDER BY due_at OFFSET 0) q
   CROSS JOIN LATERAL (SELECT * FROM baton.partition WHERE id = q.id AND secret = ANY($1::text[]) OFFSET 0) p`,
)
