import {
  keyColumns,
  laneColumns,
  laneTableColumns,
  levelColumns,
  paceColumns,
  partitionColumns,
  tableSettingsColumns,
  taskColumns,
} from './columns.ts'
import { throughputSchema } from './throughput-rows.ts'

/**
 * The counted states, as a fixed list: a change of the states in the code must not alter the schema of an
 * existing version.
 */
const states = ['ready', 'held', 'leased', 'delayed', 'parked', 'done', 'cancelled']

const counters = states
  .flatMap((state) => [`${state}_partitions`, `${state}_records`])
  .map((column) => `${column} bigint NOT NULL`)
  .join(',\n  ')

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
-- The one row that says who leads. The node that raises the term leads; see leader-row.ts.
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

-- How far the rows have followed the entries. Apart from the head, which others lock while rows are flushed.
CREATE TABLE baton.flushed (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  number bigint NOT NULL,
  next_task bigint NOT NULL,
  next_lane bigint NOT NULL,
  next_partition bigint NOT NULL,
  next_event bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO baton.flushed VALUES (true, 0, 1, 1, 1, 1);

CREATE TABLE baton.entry (
  number bigint PRIMARY KEY,
  term text COLLATE "C" NOT NULL,
  -- Null: a node took over.
  body text COLLATE "C"
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
-- An entry is read once at most: compressing it would take longer than writing it.
ALTER TABLE baton.entry ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE baton.task (
  ${taskColumns.declarations},
  ${counters},
  has_work boolean GENERATED ALWAYS AS (CASE WHEN staging IS NOT NULL OR reruns::text <> '[]' THEN true END) STORED,
  is_open boolean GENERATED ALWAYS AS
    (CASE WHEN finished_at IS NULL OR leased_partitions + delayed_partitions > 0 THEN true END) STORED,
  has_parked boolean GENERATED ALWAYS AS (CASE WHEN parked_partitions > 0 AND NOT cancelled THEN true END) STORED
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX task_by_state ON baton.task (state, id);
CREATE INDEX task_with_parked ON baton.task (id) WHERE has_parked;
CREATE INDEX task_open ON baton.task (id) WHERE is_open;
CREATE INDEX task_with_work ON baton.task (id) WHERE has_work;
CREATE INDEX task_to_purge ON baton.task (finished_at, id) WHERE finished_at IS NOT NULL AND purged_at IS NULL;
CREATE INDEX task_purged ON baton.task (purged_at, id) WHERE purged_at IS NOT NULL;

CREATE TABLE baton.lane (
  ${laneColumns.declarations},
  ${counters},
  is_open boolean GENERATED ALWAYS AS
    (CASE WHEN ready_partitions + leased_partitions + delayed_partitions > 0 THEN true END) STORED,
  UNIQUE (task, level)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX lane_open ON baton.lane (id) WHERE is_open;

CREATE TABLE baton.level (
  ${levelColumns.declarations}
) WITH (fillfactor = 20);

-- What waits by compute table in lanes that have several.
CREATE TABLE baton.lane_table (
  ${laneTableColumns.declarations},
  PRIMARY KEY (lane, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE baton.partition (
  ${partitionColumns.declarations},
  lease_ends_at bigint GENERATED ALWAYS AS (CASE WHEN state = 'leased' THEN due_at END) STORED,
  leased_by text COLLATE "C" GENERATED ALWAYS AS (CASE WHEN state = 'leased' THEN holder END) STORED,
  delayed_until bigint GENERATED ALWAYS AS (CASE WHEN state = 'delayed' THEN due_at END) STORED,
  returned_at bigint GENERATED ALWAYS AS (CASE WHEN state = 'ready' THEN due_at END) STORED,
  is_parked boolean GENERATED ALWAYS AS (CASE WHEN state = 'parked' THEN true END) STORED,
  is_mismatch boolean GENERATED ALWAYS AS (CASE WHEN reported_records <> record_count THEN true END) STORED
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX partition_by_index ON baton.partition (lane, idx);
CREATE UNIQUE INDEX partition_by_arrival ON baton.partition (lane, id);
CREATE INDEX partition_leased ON baton.partition (lease_ends_at, id) WHERE lease_ends_at IS NOT NULL;
CREATE INDEX partition_leased_by ON baton.partition (leased_by, lease_ends_at) WHERE leased_by IS NOT NULL;
CREATE INDEX partition_delayed ON baton.partition (delayed_until, id) WHERE delayed_until IS NOT NULL;
CREATE INDEX partition_returned ON baton.partition (lane, returned_at, id) WHERE returned_at IS NOT NULL;
CREATE INDEX partition_of_table ON baton.partition (lane, compute_table, id) WHERE of_several;
CREATE INDEX partition_parked ON baton.partition (lane, idx) WHERE is_parked;
CREATE INDEX partition_mismatch ON baton.partition (lane, idx) WHERE is_mismatch;

-- The indexes that were ever called back on a lane, as ranges: they show gaps, and they outlive the
-- partitions, so that a late repeat of a purged call-back is recognised.
CREATE TABLE baton.lane_range (
  lane bigint NOT NULL,
  first bigint NOT NULL,
  last bigint NOT NULL,
  PRIMARY KEY (lane, first)
);

CREATE TABLE baton.task_compute_table (
  task bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  position bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (task, name)
);
CREATE INDEX task_compute_table_in_order ON baton.task_compute_table (task, position);

-- Of compute tables that do not have the default.
CREATE TABLE baton.table_settings (
  ${tableSettingsColumns.declarations}
) WITH (fillfactor = 70);

CREATE TABLE baton.pull_key (
  ${keyColumns.declarations}
);
CREATE INDEX pull_key_to_forget ON baton.pull_key (forget_at);

-- Partitions finished per task and second: what the rate and the time left are read from.
CREATE TABLE baton.pace (
  ${paceColumns.declarations},
  PRIMARY KEY (task, second)
) WITH (fillfactor = 70);
${throughputSchema}
CREATE TABLE baton.instance (
  instance_id text COLLATE "C" PRIMARY KEY,
  role text NOT NULL,
  first_seen_at bigint NOT NULL,
  last_seen_at bigint NOT NULL,
  version text,
  started_at bigint,
  draining boolean NOT NULL DEFAULT false,
  pulls bigint NOT NULL DEFAULT 0,
  partitions bigint NOT NULL DEFAULT 0,
  records bigint NOT NULL DEFAULT 0,
  done bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  released bigint NOT NULL DEFAULT 0,
  call_backs bigint NOT NULL DEFAULT 0,
  called_back bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);

CREATE TABLE baton.produced_task (
  instance text COLLATE "C" NOT NULL,
  task bigint NOT NULL,
  last_call_back_at bigint NOT NULL,
  PRIMARY KEY (instance, task)
) WITH (fillfactor = 70);
CREATE INDEX produced_task_newest ON baton.produced_task (instance, last_call_back_at);

CREATE TABLE baton.subscription (
  id text COLLATE "C" PRIMARY KEY,
  body json NOT NULL
) WITH (fillfactor = 50);

-- Events for subscriptions, one row for each subscription.
CREATE TABLE baton.delivery (
  subscription text COLLATE "C" NOT NULL,
  event bigint NOT NULL,
  task_id text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  message json NOT NULL,
  progress json,
  -- Null when nothing is left to do. A delivery without progress was not attempted.
  pending boolean GENERATED ALWAYS AS (CASE WHEN progress IS NULL OR progress->>'state' = 'pending' THEN true END) STORED,
  PRIMARY KEY (subscription, event)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX delivery_pending ON baton.delivery (subscription, event) WHERE pending;
`
