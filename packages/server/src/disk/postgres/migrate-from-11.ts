import { schema } from './schema.ts'

// Migrates version 11 to the current version. Only unreleased programs, before 0.1.0, wrote version 11.

/**
 * Writes the leases that a node of version 11 handed out and settled in memory to the rows of partitions and
 * keys, as that version would have done. A note is two lists of arrays: leases granted, and leases settled as
 * done.
 */
const foldNotes = `
CREATE TEMPORARY TABLE given ON COMMIT DROP AS
SELECT DISTINCT ON (id) * FROM (
  SELECT n.number, n.at, (g->>0)::bigint AS id, (g->>1)::bigint AS lane, (g->>3)::bigint AS level, (g->>4)::bigint AS record_count,
    (g->>5)::integer AS term, g->>6 AS secret, (g->>8)::bigint AS holder, n.at + (g->>9)::bigint AS due_at, g->>10 AS key,
    (g->>12)::bigint AS rank, (g->>14)::boolean AS fresh, position
  FROM baton.note n CROSS JOIN LATERAL json_array_elements(n.body::json->0) WITH ORDINALITY AS e (g, position)
) u ORDER BY id, number DESC, position DESC;

CREATE TEMPORARY TABLE finished ON COMMIT DROP AS
SELECT n.at, (f->>0)::bigint AS id, (f->>2)::bigint AS task, (f->>4)::bigint AS record_count, (f->>5)::integer AS term,
  f->>6 AS secret, (f->>7)::bigint AS reported
FROM baton.note n CROSS JOIN LATERAL json_array_elements(n.body::json->1) AS e (f);

UPDATE baton.partition p SET state = 'leased', outcome = NULL, term = g.term, rank = g.rank, fresh = g.fresh,
  secret = g.secret, holder = g.holder, leased_at = g.at, due_at = g.due_at
FROM pg_temp.given g WHERE p.id = g.id AND p.state = 'held' AND p.term = g.term - 1;

-- Only what the row agrees with is counted.
DELETE FROM pg_temp.finished f WHERE NOT EXISTS (
  SELECT FROM baton.partition p WHERE p.id = f.id AND p.state = 'leased' AND p.term = f.term AND p.secret = f.secret);
UPDATE baton.partition p SET state = 'done', outcome = 'done', releases = 0, attempts = p.attempts + 1, settled_at = f.at,
  reported_records = coalesce(f.reported, p.reported_records)
FROM pg_temp.finished f WHERE p.id = f.id;

INSERT INTO baton.pull_key (key, partitions, secrets, forget_at)
SELECT key, array_agg(id ORDER BY number, position), array_agg(secret ORDER BY number, position), max(due_at) + 600000
FROM pg_temp.given WHERE key IS NOT NULL GROUP BY key
ON CONFLICT (key) DO NOTHING;

-- As counters of a transaction, which are folded in with the others.
INSERT INTO baton.count_delta (task, second, finished_partitions, finished_records, reported_declared, reported_records, mismatched)
SELECT task, at / 1000, count(*), sum(record_count), coalesce(sum(record_count) FILTER (WHERE reported IS NOT NULL), 0),
  coalesce(sum(reported), 0), count(*) FILTER (WHERE reported <> record_count)
FROM pg_temp.finished GROUP BY 1, 2;
INSERT INTO baton.count_delta (task, level, virtual, served)
SELECT 0, level, max(rank), max(rank + least(greatest(record_count, 1), 1000000000)) FROM pg_temp.given WHERE fresh GROUP BY level;
`

const states = ['ready', 'held', 'leased', 'delayed', 'parked', 'done', 'cancelled']
const counters = states.flatMap((state) => [`${state}_partitions`, `${state}_records`])

/**
 * All tables of version 11. Nodes of that version then fail because the tables are gone, instead of writing.
 */
const oldTables = [
  'task',
  'lane',
  'lane_range',
  'level',
  'compute_table',
  'task_compute_table',
  'partition',
  'count_delta',
  'pull_key',
  'instance',
  'produced_task',
  'pace',
  'task_step',
  'parked_notice',
  'commit_mark',
  'held',
  'ready',
  'due',
  'note',
  'pooled',
  'purging',
]

/**
 * A waiting partition after the last one of its lane that was ever leased is untouched. An earlier one was
 * released, was passed over, or waits for another attempt. A cancel that was running is completed.
 */
const copyPartitions = `
INSERT INTO baton.partition (id, lane, idx, record_count, compute_table, spelling, called_back_at, state, line, term,
  attempts, releases, holder, secret, outcome, due_at, leased_at, settled_at, reported_records, reason)
SELECT id, lane, idx, record_count, compute_table, spelling, called_back_at, state, line, term, attempts, releases, holder,
  secret, outcome,
  CASE WHEN state IN ('leased', 'delayed') THEN due_at
       WHEN state = 'ready' AND line = 'retry' THEN coalesce(due_at, settled_at, 0) END,
  leased_at, settled_at, reported_records, reason
FROM (
  SELECT p.id, p.lane, p.idx, p.record_count, c.name AS compute_table, p.spelling, p.called_back_at, p.term, p.attempts,
    p.releases, i.instance_id AS holder, p.secret, p.outcome, p.due_at, p.leased_at, p.settled_at, p.reported_records,
    p.reason,
    CASE WHEN p.state IN ('ready', 'held') THEN CASE WHEN t.cancelled THEN 'cancelled' ELSE 'ready' END
         WHEN p.state = 'parked' AND t.cancelled THEN 'cancelled' ELSE p.state END AS state,
    CASE WHEN p.state IN ('ready', 'held') THEN
           CASE WHEN t.cancelled OR p.id > cursor.id THEN 'fresh'
                WHEN p.term = 0 OR p.outcome = 'released' THEN 'released' ELSE 'retry' END
         WHEN p.state = 'leased' THEN CASE WHEN p.attempts > 0 THEN 'retry' ELSE 'fresh' END
         WHEN p.state = 'delayed' THEN CASE WHEN p.outcome = 'released' THEN 'released' ELSE 'retry' END
         WHEN p.state = 'parked' THEN 'retry' ELSE 'fresh' END AS line
  FROM baton.old_partition p
  JOIN (SELECT lane, max(CASE WHEN term > 0 THEN id ELSE 0 END) AS id FROM baton.old_partition GROUP BY lane) cursor
    ON cursor.lane = p.lane
  JOIN baton.old_lane l ON l.id = p.lane
  JOIN baton.old_task t ON t.id = l.task
  JOIN baton.old_compute_table c ON c.id = p.compute_table
  LEFT JOIN baton.old_instance i ON i.id = p.holder
) p ORDER BY id;
`

/**
 * Counted from rows. Purged partitions are only in the old counters: they count as cancelled up to the number
 * that the counters give, and the others as done.
 */
const counted = states
  .flatMap((state) => [
    `count(*) FILTER (WHERE p.state = '${state}') AS ${state}_partitions`,
    `coalesce(sum(p.record_count) FILTER (WHERE p.state = '${state}'), 0) AS ${state}_records`,
  ])
  .join(', ')

const laneCounter = (column: string): string => {
  const rows = `coalesce(c.${column}, 0)`
  const [state, what] = column.split('_')
  if (state !== 'done' && state !== 'cancelled') return rows
  const purged = what === 'records' ? 'l.purged_records' : 'l.purged'
  const cancelled = `least(${purged}, greatest(0, l.cancelled_${what} + coalesce(d.cancelled_${what}, 0) - coalesce(c.cancelled_${what}, 0)))`
  return state === 'cancelled' ? `${rows} + ${cancelled}` : `${rows} + ${purged} - ${cancelled}`
}

/**
 * A lane continues at the rank of its first waiting partition, or, if none waits, at the rank that would have
 * come next.
 */
const copyLanes = `
INSERT INTO baton.level (level, virtual, served)
SELECT level, max(virtual), max(served) FROM (
  SELECT level, virtual, served FROM baton.old_level WHERE level >= 0
  UNION ALL SELECT level, virtual, served FROM baton.old_count_delta WHERE virtual IS NOT NULL
) u GROUP BY level;

INSERT INTO baton.lane (id, task, level, tag, retry_tag, cursor, tail, released, retries, turn, parked_skipped, purged,
  purged_records, ${counters.join(', ')})
SELECT id, task, level, tag, retry_tag, cursor, tail, released, retries,
  least(CASE WHEN fresh + released > 0 THEN tag END, CASE WHEN retries > 0 THEN retry_tag END),
  parked_skipped, purged, purged_records, ${counters.join(', ')}
FROM (
  SELECT l.id, l.task, l.level, l.parked_skipped, l.purged, l.purged_records,
    coalesce(r.first_rank, greatest(l.finish, v.virtual)) AS tag,
    coalesce(r.first_retry_rank, greatest(l.retry_finish, v.virtual)) AS retry_tag,
    coalesce(c.cursor, 0) AS cursor, coalesce(c.tail, 0) AS tail, coalesce(c.fresh, 0) AS fresh,
    coalesce(c.released, 0) AS released, coalesce(c.retries, 0) AS retries,
    ${counters.map((column) => `${laneCounter(column)} AS ${column}`).join(', ')}
  FROM baton.old_lane l
  LEFT JOIN baton.level v ON v.level = l.level
  LEFT JOIN (
    SELECT p.lane, max(p.id) AS tail, max(CASE WHEN p.term > 0 THEN p.id ELSE 0 END) AS cursor,
      count(*) FILTER (WHERE p.state = 'ready' AND p.line = 'fresh') AS fresh,
      count(*) FILTER (WHERE p.state = 'ready' AND p.line = 'released') AS released,
      count(*) FILTER (WHERE p.state = 'ready' AND p.line = 'retry') AS retries, ${counted}
    FROM baton.partition p GROUP BY p.lane
  ) c ON c.lane = l.id
  LEFT JOIN (
    SELECT q.lane, min(q.rank) FILTER (WHERE p.line = 'fresh') AS first_rank,
      min(q.rank) FILTER (WHERE p.line = 'retry') AS first_retry_rank
    FROM baton.old_ready q JOIN baton.old_partition o ON o.id = q.id AND o.stay = q.stay AND o.state = 'held'
    JOIN baton.partition p ON p.id = q.id AND p.state = 'ready' GROUP BY q.lane
  ) r ON r.lane = l.id
  LEFT JOIN (
    SELECT lane, sum(cancelled_partitions) AS cancelled_partitions, sum(cancelled_records) AS cancelled_records
    FROM baton.old_count_delta WHERE lane IS NOT NULL GROUP BY lane
  ) d ON d.lane = l.id
) l ORDER BY id;
`

/** If a lane has one table, the table's counts are those of the lane. The orders of tables start equal. */
const copyLaneTables = `
INSERT INTO baton.lane_table (lane, name, level, tag, retry_tag, turn, cursor, ready, released, retries)
SELECT p.lane, p.compute_table, l.level, 0, 0, CASE WHEN count(*) FILTER (WHERE p.state = 'ready') > 0 THEN 0 END,
  max(CASE WHEN p.term > 0 THEN p.id ELSE 0 END), count(*) FILTER (WHERE p.state = 'ready'),
  count(*) FILTER (WHERE p.state = 'ready' AND p.line = 'released'),
  count(*) FILTER (WHERE p.state = 'ready' AND p.line = 'retry')
FROM baton.partition p JOIN baton.lane l ON l.id = p.lane GROUP BY p.lane, p.compute_table, l.level;
`

const UNFINISHED = 'ready_partitions + leased_partitions + delayed_partitions + parked_partitions'
/** In SQL: a lane keeps the levels above it closed. */
const HOLDS_BARRIER = `${UNFINISHED} > CASE WHEN parked_skipped THEN parked_partitions ELSE 0 END`
const MOST = Number.MAX_SAFE_INTEGER

/** Adds counters that were not folded in yet, and derives states and barriers from the counts. */
const copyTasks = `
INSERT INTO baton.task (id, task_id, state, paused, cancelled, sealed, expected_partitions, level_barrier, open_level,
  generation, first_call_back_at, last_call_back_at, finished_at, purged_at, delivered, attempts_wasted, reported_declared,
  reported_records, mismatched, owners, reruns, staging, ${counters.join(', ')})
SELECT t.id, t.task_id, t.state, t.paused, t.cancelled, t.sealed, t.expected_partitions, t.level_barrier,
  CASE WHEN t.level_barrier THEN l.open_level END, t.generation, t.first_call_back_at, t.last_call_back_at, t.finished_at,
  t.purged_at, t.delivered + coalesce(d.delivered, 0), t.attempts_wasted + coalesce(d.attempts_wasted, 0),
  t.reported_declared + coalesce(d.reported_declared, 0),
  least(t.reported_records + coalesce(d.reported_records, 0), ${MOST}), t.mismatched + coalesce(d.mismatched, 0),
  '[]', coalesce(s.reruns, '[]'), NULL, ${counters.map((column) => `coalesce(l.${column}, 0)`).join(', ')}
FROM baton.old_task t
LEFT JOIN (
  SELECT task, min(level) FILTER (WHERE ${HOLDS_BARRIER}) AS open_level,
    ${counters.map((column) => `sum(${column}) AS ${column}`).join(', ')} FROM baton.lane GROUP BY task
) l ON l.task = t.id
LEFT JOIN (
  SELECT task, sum(delivered) AS delivered, sum(attempts_wasted) AS attempts_wasted,
    sum(reported_declared) AS reported_declared, sum(reported_records) AS reported_records, sum(mismatched) AS mismatched
  FROM baton.old_count_delta GROUP BY task
) d ON d.task = t.id
LEFT JOIN (
  SELECT task, json_agg(json_build_object('only', nullif(only_level, -1), 'begunAt', begun_at, 'level', level, 'index', idx)
    ORDER BY begun_at, only_level) AS reruns
  FROM baton.old_task_step WHERE step = 'rerun' GROUP BY task
) s ON s.task = t.id ORDER BY t.id;

UPDATE baton.task t SET state = n.state, finished_at = CASE WHEN n.state IN ('done', 'cancelled') THEN
  coalesce(t.finished_at, (SELECT max(p.settled_at) FROM baton.lane l JOIN baton.partition p ON p.lane = l.id WHERE l.task = t.id),
    t.last_call_back_at) END
FROM (
  SELECT id, CASE WHEN cancelled THEN 'cancelled' WHEN reruns::text = '[]' AND ${UNFINISHED} = 0 THEN 'done'
    WHEN paused THEN 'paused'
    WHEN reruns::text = '[]' AND (${UNFINISHED} = parked_partitions
      OR level_barrier AND parked_partitions > 0 AND ${UNFINISHED} = parked_partitions + ready_partitions AND EXISTS (
        SELECT FROM baton.lane l WHERE l.task = task.id AND l.level = task.open_level AND NOT l.parked_skipped
          AND l.parked_partitions > 0 AND l.ready_partitions + l.leased_partitions + l.delayed_partitions = 0))
      THEN 'stalled' ELSE 'open' END AS state
  FROM baton.task
) n WHERE n.id = t.id AND (n.state <> t.state OR t.finished_at IS NULL OR n.state NOT IN ('done', 'cancelled'));
`

/** The numbers in a lease id are in base 36. A lease of a key is over if its partition was leased again. */
const copyKeys = `
CREATE FUNCTION baton.base36(number bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  WITH RECURSIVE digits (rest, text) AS (
    SELECT number, '' UNION ALL
    SELECT rest / 36, substr('0123456789abcdefghijklmnopqrstuvwxyz', (rest % 36)::integer + 1, 1) || text FROM digits WHERE rest > 0
  ) SELECT text FROM digits WHERE rest = 0
$$;
INSERT INTO baton.pull_key (key, leases, forget_at)
SELECT k.key, coalesce((
    SELECT json_agg(baton.base36(p.id) || '-' || baton.base36(p.term) || '-' || p.secret ORDER BY position)
    FROM unnest(k.partitions, k.secrets) WITH ORDINALITY AS g (id, secret, position)
    JOIN baton.partition p ON p.id = g.id AND p.secret = g.secret COLLATE "C"
  ), '[]'), k.forget_at
FROM baton.old_pull_key k;
DROP FUNCTION baton.base36(bigint);
`

const instanceColumns = `instance_id, role, first_seen_at, last_seen_at, version, started_at, draining, pulls, partitions,
  records, done, failed, released, call_backs, called_back`

const copyOthers = `
INSERT INTO baton.lane_range (lane, first, last) SELECT lane, first, last FROM baton.old_lane_range;
INSERT INTO baton.task_compute_table (task, name)
SELECT u.task, c.name FROM baton.old_task_compute_table u JOIN baton.old_compute_table c ON c.id = u.compute_table
ORDER BY u.task, u.compute_table;
INSERT INTO baton.pace (task, second, partitions, records)
SELECT task, second, sum(partitions), least(sum(records), ${MOST}) FROM (
  SELECT task, second, partitions, records FROM baton.old_pace
  UNION ALL SELECT task, second, finished_partitions, finished_records FROM baton.old_count_delta
    WHERE finished_partitions IS NOT NULL AND second IS NOT NULL
) u GROUP BY task, second;
INSERT INTO baton.instance (${instanceColumns}) SELECT ${instanceColumns} FROM baton.old_instance;
INSERT INTO baton.produced_task (instance, task, last_call_back_at)
SELECT i.instance_id, p.task, p.last_call_back_at FROM baton.old_produced_task p JOIN baton.old_instance i ON i.id = p.instance;

-- Ids of what was purged are not reused, because lease ids contain them.
UPDATE baton.flushed SET
  next_task = greatest((SELECT last_value FROM baton.task_id_seq), (SELECT max(id) FROM baton.task), 0) + 1,
  next_lane = greatest((SELECT last_value FROM baton.lane_id_seq), (SELECT max(id) FROM baton.lane), 0) + 1,
  next_partition = greatest((SELECT last_value FROM baton.partition_id_seq), (SELECT max(id) FROM baton.partition), 0) + 1;
`

const setAside = oldTables.map((table) => `ALTER TABLE baton.${table} RENAME TO old_${table};`).join('\n')

/** Indexes and constraints keep their names when their tables are renamed, so they are dropped. */
const DROP_INDEXES = `DO $$ DECLARE named record; BEGIN
  FOR named IN SELECT conrelid::regclass AS owner, conname FROM pg_constraint
    WHERE connamespace = 'baton'::regnamespace AND contype IN ('f', 'p', 'u') ORDER BY contype
  LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', named.owner, named.conname); END LOOP;
  FOR named IN SELECT indexrelid::regclass AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = 'baton'::regnamespace
  LOOP EXECUTE format('DROP INDEX %s', named.name); END LOOP;
END $$;`

/**
 * Moves from rows that every node wrote to entries that the leader writes. Waits for transactions of nodes
 * that are still running; after that, these nodes find no tables to write to.
 */
export const migrateFrom11 = `
LOCK TABLE ${oldTables.map((table) => `baton.${table}`).join(', ')} IN ACCESS EXCLUSIVE MODE;
${foldNotes}
${setAside}
${DROP_INDEXES}
${schema}
${copyPartitions}
${copyLanes}
${copyLaneTables}
${copyTasks}
${copyKeys}
${copyOthers}
DROP TABLE ${oldTables.map((table) => `baton.old_${table}`).join(', ')};
DROP SEQUENCE baton.change_order, baton.due_number, baton.rolled_at, baton.note_run;
ANALYZE baton.task; ANALYZE baton.lane; ANALYZE baton.lane_table; ANALYZE baton.partition;
`
