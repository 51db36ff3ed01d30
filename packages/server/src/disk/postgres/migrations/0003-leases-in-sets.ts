/**
 * Leases that were given together and end together are one row of `due`, so that a claim of 50 partitions writes one
 * place instead of 50 and settling them removes one. Which set a partition is due with stands in its row. See due-sets.ts.
 */
export const leasesInSets = `
-- Each number begins a run of 512: a claim numbers its sets within one.
CREATE SEQUENCE baton.due_number INCREMENT BY 512;

ALTER TABLE baton.partition ADD COLUMN due_with bigint;
UPDATE baton.partition SET due_with = nextval('baton.due_number') WHERE state IN ('leased', 'delayed');

DROP TABLE baton.due;
CREATE TABLE baton.due (
  delayed boolean NOT NULL,
  due_at bigint NOT NULL,
  number bigint NOT NULL,
  holder bigint,
  -- How many of the partitions are still due with this set.
  remaining integer NOT NULL,
  ids bigint[] NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
INSERT INTO baton.due SELECT state = 'delayed', due_at, due_with, holder, 1, ARRAY[id]
  FROM baton.partition WHERE state IN ('leased', 'delayed') ORDER BY due_at;
CREATE UNIQUE INDEX due_in_order ON baton.due (delayed, due_at, number);
`
