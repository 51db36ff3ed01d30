/**
 * Writes what a node of version 11 had handed out and settled from memory into the rows of partitions and keys, as that
 * version would have done. A note is two lists of arrays: leases that were given, and leases that were settled as done.
 */
export const foldNotes = `
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
