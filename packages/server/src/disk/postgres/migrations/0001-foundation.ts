/** The states as they were then: what was migrated once does not change with them. */
const states = ['ready', 'held', 'leased', 'delayed', 'parked', 'done', 'cancelled']

const counterColumns = states.flatMap((state) => [`${state}_partitions`, `${state}_records`])
const counters = counterColumns.map((column) => `${column} bigint NOT NULL DEFAULT 0`).join(',\n  ')
const counterDeltas = counterColumns.map((column) => `${column} bigint`).join(',\n  ')

/**
 * As in the embedded store a partition's row is narrow and its indexes are partial. Differences:
 * a tripwire (refill) stands in the window of a lane with a backlog, because no node knows what the
 * others took; and counters are gathered in count_delta, because every node finishes partitions of
 * the same lane and would wait for the others on its row.
 */
export const foundation = `
CREATE TABLE baton.task (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  task_id text COLLATE "C" NOT NULL UNIQUE,
  state text NOT NULL,
  paused boolean NOT NULL DEFAULT false,
  cancelled boolean NOT NULL DEFAULT false,
  sealed boolean NOT NULL DEFAULT false,
  expected_partitions bigint,
  level_barrier boolean NOT NULL,
  open_level bigint,
  generation bigint NOT NULL DEFAULT 1,
  first_call_back_at bigint NOT NULL,
  last_call_back_at bigint NOT NULL,
  finished_at bigint,
  purged_at bigint,
  delivered bigint NOT NULL DEFAULT 0,
  attempts_wasted bigint NOT NULL DEFAULT 0,
  reported_declared bigint NOT NULL DEFAULT 0,
  reported_records bigint NOT NULL DEFAULT 0,
  mismatched bigint NOT NULL DEFAULT 0,
  -- Where the task stands in the order of changes, for those who watch.
  changed bigint NOT NULL DEFAULT 0,
  ${counters}
) WITH (fillfactor = 70);
CREATE INDEX task_by_state ON baton.task (state, id);
CREATE INDEX task_to_purge ON baton.task (finished_at) WHERE finished_at IS NOT NULL AND purged_at IS NULL;
CREATE INDEX task_by_change ON baton.task (changed);

CREATE TABLE baton.lane (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  task bigint NOT NULL REFERENCES baton.task (id),
  level bigint NOT NULL,
  finish bigint NOT NULL DEFAULT 0,
  retry_finish bigint NOT NULL DEFAULT 0,
  parked_skipped boolean NOT NULL DEFAULT false,
  purged bigint NOT NULL DEFAULT 0,
  purged_records bigint NOT NULL DEFAULT 0,
  ${counters},
  UNIQUE (task, level)
) WITH (fillfactor = 70);

-- The indexes that were ever called back on a lane, as ranges: they tell gaps, and they outlive the
-- partitions, so that a late repeat of a purged call-back is recognised.
CREATE TABLE baton.lane_range (
  lane bigint NOT NULL REFERENCES baton.lane (id),
  first bigint NOT NULL,
  last bigint NOT NULL,
  PRIMARY KEY (lane, first)
);

CREATE TABLE baton.level (
  level bigint PRIMARY KEY,
  virtual bigint NOT NULL,
  served bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE baton.compute_table (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE baton.task_compute_table (
  task bigint NOT NULL REFERENCES baton.task (id),
  compute_table bigint NOT NULL REFERENCES baton.compute_table (id),
  PRIMARY KEY (task, compute_table)
);

CREATE TABLE baton.partition (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lane bigint NOT NULL,
  idx bigint NOT NULL,
  level bigint NOT NULL,
  rank bigint,
  due_at bigint,
  holder bigint,
  record_count bigint NOT NULL,
  compute_table bigint NOT NULL,
  called_back_at bigint NOT NULL,
  leased_at bigint,
  settled_at bigint,
  reported_records bigint,
  term integer NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  releases integer NOT NULL DEFAULT 0,
  fresh boolean NOT NULL DEFAULT true,
  refill boolean NOT NULL DEFAULT false,
  state text COLLATE "C" NOT NULL,
  outcome text COLLATE "C",
  secret text COLLATE "C" NOT NULL DEFAULT '',
  spelling text COLLATE "C",
  reason text
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX partition_identity ON baton.partition (lane, idx);
CREATE INDEX partition_ready ON baton.partition (level, rank, id) WHERE state = 'ready';
CREATE INDEX partition_ready_of_lane ON baton.partition (lane, id) WHERE state = 'ready';
CREATE INDEX partition_held_of_lane ON baton.partition (lane, id) WHERE state = 'held';
CREATE INDEX partition_leased ON baton.partition (due_at, holder) WHERE state = 'leased';
CREATE INDEX partition_delayed ON baton.partition (due_at) WHERE state = 'delayed';
CREATE INDEX partition_parked_of_lane ON baton.partition (lane, idx) WHERE state = 'parked';
CREATE INDEX partition_mismatch ON baton.partition (lane, idx)
  WHERE reported_records IS NOT NULL AND reported_records <> record_count;

-- What transactions did to the counters and to the time of a level, until the roller folds it in.
CREATE TABLE baton.count_delta (
  task bigint NOT NULL,
  lane bigint,
  level bigint,
  at bigint,
  second bigint,
  finished_partitions bigint,
  finished_records bigint,
  delivered bigint,
  attempts_wasted bigint,
  reported_declared bigint,
  reported_records bigint,
  mismatched bigint,
  virtual bigint,
  served bigint,
  parked bigint[],
  ${counterDeltas}
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, vacuum_truncate = off);

CREATE TABLE baton.pull_key (
  key text COLLATE "C" PRIMARY KEY,
  leases text[] NOT NULL,
  forget_at bigint NOT NULL
);
CREATE INDEX pull_key_to_forget ON baton.pull_key (forget_at);

CREATE TABLE baton.instance (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  instance_id text COLLATE "C" NOT NULL UNIQUE,
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
CREATE INDEX instance_to_forget ON baton.instance (last_seen_at);

CREATE TABLE baton.produced_task (
  instance bigint NOT NULL,
  task bigint NOT NULL,
  last_call_back_at bigint NOT NULL,
  PRIMARY KEY (instance, task)
);
CREATE INDEX produced_task_newest ON baton.produced_task (instance, last_call_back_at);

-- Partitions finished per task and second: what the rate and the time left are read from.
CREATE TABLE baton.pace (
  task bigint NOT NULL,
  second bigint NOT NULL,
  partitions bigint NOT NULL,
  records bigint NOT NULL,
  PRIMARY KEY (task, second)
);

-- Work that a control order leaves behind when it touches more rows than one transaction should.
CREATE TABLE baton.task_step (
  task bigint NOT NULL REFERENCES baton.task (id),
  step text NOT NULL,
  -- How far it came.
  level bigint NOT NULL DEFAULT 0,
  idx bigint NOT NULL DEFAULT -1,
  -- For a step that concerns one level alone; -1 for all of them.
  only_level bigint NOT NULL,
  -- What was finished later is not meant.
  begun_at bigint NOT NULL,
  PRIMARY KEY (task, step, only_level)
);

-- The order of changes: given out under the roller's lock, so it is the order of the commits.
CREATE SEQUENCE baton.change_order;
SELECT setval('baton.change_order', 1);

CREATE TABLE baton.parked_notice (
  position bigint PRIMARY KEY,
  partition bigint NOT NULL
);

-- Which of a connection's transactions was committed last; see transactions.ts.
CREATE TABLE baton.commit_mark (
  session uuid PRIMARY KEY,
  number bigint NOT NULL,
  marked_at bigint NOT NULL
) WITH (fillfactor = 20);
`
