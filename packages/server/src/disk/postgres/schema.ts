import { postgres } from './dialect.ts'

const generated = (column: string, cases: string): string =>
  `${column} GENERATED ALWAYS AS (CASE ${cases} END) STORED`

/**
 * Rows are flushed in any order, so there are no foreign keys. Text has the collation "C", because the engine
 * compares it by bytes.
 *
 * An update is cheap (HOT) as long as no column used by an index changes, and columns in the predicate of a
 * partial index count, too. So the partial indexes of partitions use generated columns that are null unless
 * they matter: a partition that was leased and finished between two flushes goes from `ready` to `done`
 * without touching an index. The low fillfactor leaves space for the next version of each row on its page.
 */
export const schema = `
-- The one row that says who leads: the node that wrote its term last; see leader-row.ts.
CREATE TABLE baton.head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  term text COLLATE "C",
  leader_id text COLLATE "C",
  leader_url text COLLATE "C",
  cluster_id text COLLATE "C" NOT NULL DEFAULT gen_random_uuid(),
  secret text COLLATE "C" NOT NULL
    DEFAULT replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')
) WITH (fillfactor = 10);
INSERT INTO baton.head DEFAULT VALUES;

-- How far the rows have followed the entries, and how often rows were written. Apart from the leader, whose row
-- others lock while rows are written.
CREATE TABLE baton.flushed (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  number bigint NOT NULL,
  writes bigint NOT NULL DEFAULT 0,
  next_task bigint NOT NULL,
  next_lane bigint NOT NULL,
  next_partition bigint NOT NULL,
  next_event bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO baton.flushed VALUES (true, 0, 0, 1, 1, 1, 1);

CREATE TABLE baton.entry (
  number bigint PRIMARY KEY,
  term text COLLATE "C" NOT NULL,
  -- Null: a node took over.
  body text COLLATE "C"
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
-- An entry is read once at most: compressing it would take longer than writing it.
ALTER TABLE baton.entry ALTER COLUMN body SET STORAGE EXTERNAL;

${postgres.tasks.create(
  generated(
    'is_open boolean',
    'WHEN finished_at IS NULL OR leased_partitions + delayed_partitions > 0 OR staging IS NOT NULL THEN true',
  ),
  generated('has_parked boolean', 'WHEN parked_partitions > 0 AND NOT cancelled THEN true'),
  'UNIQUE (task_id)',
)} WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX task_by_state ON baton.task (state, id);
CREATE INDEX task_with_parked ON baton.task (id) WHERE has_parked;
CREATE INDEX task_open ON baton.task (id) WHERE is_open;
CREATE INDEX task_to_purge ON baton.task (finished_at, id) WHERE finished_at IS NOT NULL AND purged_at IS NULL;
CREATE INDEX task_purged ON baton.task (purged_at, id) WHERE purged_at IS NOT NULL;

${postgres.lanes.create(
  generated(
    'is_open boolean',
    'WHEN ready_partitions + leased_partitions + delayed_partitions > 0 THEN true',
  ),
  'UNIQUE (task, level)',
)} WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX lane_open ON baton.lane (id) WHERE is_open;

${postgres.levels.create()} WITH (fillfactor = 20);

-- What waits by compute table in lanes that have several.
${postgres.laneTables.create()} WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

${postgres.partitions.create(
  generated('lease_ends_at bigint', "WHEN state = 'leased' THEN due_at"),
  generated('delayed_until bigint', "WHEN state = 'delayed' THEN due_at"),
  generated('returned_at bigint', "WHEN state = 'ready' THEN due_at"),
  generated('is_begun boolean', "WHEN due_at IS NOT NULL OR state = 'parked' THEN true"),
  generated('is_parked boolean', "WHEN state = 'parked' THEN true"),
  generated('parked_as text COLLATE "C"', "WHEN state = 'parked' THEN failure"),
  generated('is_mismatch boolean', 'WHEN reported_records <> record_count THEN true'),
)} WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX partition_by_index ON baton.partition (lane, idx);
CREATE UNIQUE INDEX partition_by_arrival ON baton.partition (lane, id);
CREATE INDEX partition_leased ON baton.partition (lease_ends_at, id) WHERE lease_ends_at IS NOT NULL;
CREATE INDEX partition_delayed ON baton.partition (delayed_until, id) WHERE delayed_until IS NOT NULL;
CREATE INDEX partition_returned ON baton.partition (lane, returned_at, id) WHERE returned_at IS NOT NULL;
CREATE INDEX partition_of_table ON baton.partition (lane, compute_table, id) WHERE in_mixed_lane;
CREATE INDEX partition_parked ON baton.partition (lane, idx) WHERE is_parked;
CREATE INDEX partition_begun ON baton.partition (lane, idx) WHERE is_begun;
CREATE INDEX partition_parked_as ON baton.partition (lane, parked_as, idx) WHERE parked_as IS NOT NULL;
CREATE INDEX partition_failed ON baton.partition (lane, failure, idx) WHERE failure IS NOT NULL;
CREATE INDEX partition_mismatch ON baton.partition (lane, idx) WHERE is_mismatch;

-- Of the partitions that have one.
${postgres.checkpoints.create()} WITH (fillfactor = 70);

-- The indexes that were ever called back on a lane, as ranges: they show gaps, and they outlive the
-- partitions, so that a late repeat of a purged call-back is recognised.
${postgres.ranges.create()};

-- The compute tables of a task, in the order of their first use.
${postgres.tables.create('position bigint GENERATED ALWAYS AS IDENTITY')};
CREATE INDEX task_table_order ON baton.task_table (task, position);

-- Of compute tables that do not have the default.
${postgres.tableSettings.create()};

${postgres.keys.create()};
CREATE INDEX pull_key_to_forget ON baton.pull_key (forget_at);

-- What became done per task and level, by minute and by hour. Levels from THROUGHPUT_LEVELS up share one row.
${postgres.throughput.create()} WITH (fillfactor = 70);
CREATE INDEX throughput_by_age ON baton.throughput (step, at);

-- Who changed what.
${postgres.audit.create()};
CREATE INDEX audit_of_task ON baton.audit (task_id, id) WHERE task_id IS NOT NULL;
CREATE INDEX audit_by_name ON baton.audit (name, id) WHERE name IS NOT NULL;

${postgres.instances.create()} WITH (fillfactor = 70);

${postgres.produced.create()} WITH (fillfactor = 70);
CREATE INDEX produced_task_newest ON baton.produced_task (instance, at);

${postgres.subscriptions.create()} WITH (fillfactor = 50);

-- Events for subscriptions, one row for each subscription. Pending is null when nothing is left to do. A
-- delivery without progress was not attempted.
${postgres.deliveries.create(
  generated('pending boolean', "WHEN progress IS NULL OR progress->>'state' = 'pending' THEN true"),
)} WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX delivery_pending ON baton.delivery (subscription, event) WHERE pending;
`
