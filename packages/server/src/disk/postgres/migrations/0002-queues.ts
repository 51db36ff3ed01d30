/**
 * A state in the predicate of an index makes every change of it a new entry in every index of the
 * table, about nine on the way of a partition. So whoever waits is listed in narrow tables instead, and the row of
 * a partition changes in place: its pages are filled by less than half, so that the next version
 * of each row fits beside it. See queues.ts.
 */
export const queues = `
CREATE TABLE baton.held (
  lane bigint NOT NULL,
  id bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

CREATE TABLE baton.ready (
  level bigint NOT NULL,
  rank bigint NOT NULL,
  id bigint NOT NULL,
  lane bigint NOT NULL,
  task bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- Leases and back-offs that run.
CREATE TABLE baton.due (
  delayed boolean NOT NULL,
  due_at bigint NOT NULL,
  id bigint NOT NULL,
  holder bigint
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

INSERT INTO baton.held SELECT lane, id FROM baton.partition WHERE state = 'held' ORDER BY lane, id;
INSERT INTO baton.ready SELECT p.level, p.rank, p.id, p.lane, l.task
  FROM baton.partition p JOIN baton.lane l ON l.id = p.lane WHERE p.state = 'ready' ORDER BY p.level, p.rank, p.id;
INSERT INTO baton.due SELECT state = 'delayed', due_at, id, holder
  FROM baton.partition WHERE state IN ('leased', 'delayed') ORDER BY due_at;

CREATE UNIQUE INDEX held_of_lane ON baton.held (lane, id);
CREATE UNIQUE INDEX ready_in_order ON baton.ready (level, rank, id);
CREATE INDEX ready_of_lane ON baton.ready (lane, id);
CREATE UNIQUE INDEX due_in_order ON baton.due (delayed, due_at, id);

DROP INDEX baton.partition_ready, baton.partition_ready_of_lane, baton.partition_held_of_lane,
  baton.partition_leased, baton.partition_delayed, baton.partition_parked_of_lane;
ALTER TABLE baton.partition SET (fillfactor = 45);
ALTER TABLE baton.partition ADD COLUMN parked boolean NOT NULL DEFAULT false;
UPDATE baton.partition SET parked = true WHERE state = 'parked';
CREATE INDEX partition_parked_of_lane ON baton.partition (lane, idx) WHERE parked;
`
