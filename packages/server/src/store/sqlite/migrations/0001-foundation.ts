/** The states as they were then: what was migrated once does not change with them. */
const states = ['ready', 'held', 'leased', 'delayed', 'parked', 'done', 'cancelled']

const counters = states
  .map(
    (state) => `${state}_partitions INTEGER NOT NULL DEFAULT 0, ${state}_records INTEGER NOT NULL DEFAULT 0`,
  )
  .join(',\n  ')

/**
 * Every transition of a partition rewrites its row, so the row is narrow (names are kept apart,
 * the partition's own name only where it is not the canonical one) and each index is partial:
 * a row stands in the identity index and in those of its state, and in no other.
 */
export const foundation = `
CREATE TABLE task (
  id INTEGER PRIMARY KEY,
  task_id TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL,
  paused INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  sealed INTEGER NOT NULL DEFAULT 0,
  expected_partitions INTEGER,
  level_barrier INTEGER NOT NULL,
  open_level INTEGER,
  generation INTEGER NOT NULL DEFAULT 1,
  first_call_back_at INTEGER NOT NULL,
  last_call_back_at INTEGER NOT NULL,
  finished_at INTEGER,
  purged_at INTEGER,
  delivered INTEGER NOT NULL DEFAULT 0,
  attempts_wasted INTEGER NOT NULL DEFAULT 0,
  reported_declared INTEGER NOT NULL DEFAULT 0,
  reported_records INTEGER NOT NULL DEFAULT 0,
  mismatched INTEGER NOT NULL DEFAULT 0,
  ${counters}
) STRICT;
CREATE INDEX task_by_state ON task (state, id);
CREATE INDEX task_to_purge ON task (finished_at) WHERE finished_at IS NOT NULL AND purged_at IS NULL;

CREATE TABLE lane (
  id INTEGER PRIMARY KEY,
  task INTEGER NOT NULL REFERENCES task (id),
  level INTEGER NOT NULL,
  finish INTEGER NOT NULL DEFAULT 0,
  retry_finish INTEGER NOT NULL DEFAULT 0,
  parked_skipped INTEGER NOT NULL DEFAULT 0,
  purged INTEGER NOT NULL DEFAULT 0,
  purged_records INTEGER NOT NULL DEFAULT 0,
  ${counters},
  UNIQUE (task, level)
) STRICT;

-- The indexes that were ever called back on a lane, as ranges: they tell gaps, and they outlive the
-- partitions, so that a late repeat of a purged call-back is recognised.
CREATE TABLE lane_range (
  lane INTEGER NOT NULL REFERENCES lane (id),
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY (lane, first)
) STRICT, WITHOUT ROWID;

CREATE TABLE level (
  level INTEGER PRIMARY KEY,
  virtual INTEGER NOT NULL,
  served INTEGER NOT NULL
) STRICT;

CREATE TABLE compute_table (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE task_compute_table (
  task INTEGER NOT NULL REFERENCES task (id),
  compute_table INTEGER NOT NULL REFERENCES compute_table (id),
  PRIMARY KEY (task, compute_table)
) STRICT, WITHOUT ROWID;

CREATE TABLE partition (
  id INTEGER PRIMARY KEY,
  lane INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  level INTEGER NOT NULL,
  state TEXT NOT NULL,
  rank INTEGER,
  fresh INTEGER NOT NULL DEFAULT 1,
  due_at INTEGER,
  term INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  releases INTEGER NOT NULL DEFAULT 0,
  holder INTEGER,
  secret TEXT NOT NULL DEFAULT '',
  outcome TEXT,
  record_count INTEGER NOT NULL,
  compute_table INTEGER NOT NULL,
  called_back_at INTEGER NOT NULL,
  leased_at INTEGER,
  settled_at INTEGER,
  reported_records INTEGER,
  spelling TEXT,
  reason TEXT
) STRICT;
CREATE UNIQUE INDEX partition_identity ON partition (lane, idx);
CREATE INDEX partition_ready ON partition (level, rank, id) WHERE state = 'ready';
CREATE INDEX partition_ready_of_lane ON partition (lane, id) WHERE state = 'ready';
CREATE INDEX partition_held_of_lane ON partition (lane, id) WHERE state = 'held';
CREATE INDEX partition_leased ON partition (due_at, holder) WHERE state = 'leased';
CREATE INDEX partition_delayed ON partition (due_at) WHERE state = 'delayed';
CREATE INDEX partition_parked_of_lane ON partition (lane, idx) WHERE state = 'parked';
CREATE INDEX partition_mismatch ON partition (lane, idx)
  WHERE reported_records IS NOT NULL AND reported_records <> record_count;

CREATE TABLE pull_key (
  key TEXT PRIMARY KEY,
  leases TEXT NOT NULL,
  forget_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pull_key_to_forget ON pull_key (forget_at);

-- Ids are not used twice: finished partitions still point at instances that were forgotten.
CREATE TABLE instance (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  instance_id TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL,
  first_seen_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  version TEXT,
  started_at INTEGER,
  draining INTEGER NOT NULL DEFAULT 0,
  pulls INTEGER NOT NULL DEFAULT 0,
  partitions INTEGER NOT NULL DEFAULT 0,
  records INTEGER NOT NULL DEFAULT 0,
  done INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  released INTEGER NOT NULL DEFAULT 0,
  call_backs INTEGER NOT NULL DEFAULT 0,
  called_back INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX instance_to_forget ON instance (last_seen_at);

CREATE TABLE produced_task (
  instance INTEGER NOT NULL REFERENCES instance (id),
  task INTEGER NOT NULL REFERENCES task (id),
  last_call_back_at INTEGER NOT NULL,
  PRIMARY KEY (instance, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX produced_task_newest ON produced_task (instance, last_call_back_at);

-- Partitions finished per task and second: what the rate and the time left are read from.
CREATE TABLE pace (
  task INTEGER NOT NULL REFERENCES task (id),
  second INTEGER NOT NULL,
  partitions INTEGER NOT NULL,
  records INTEGER NOT NULL,
  PRIMARY KEY (task, second)
) STRICT, WITHOUT ROWID;

-- Written to find out whether a commit would succeed.
CREATE TABLE probe (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  probed_at INTEGER NOT NULL
) STRICT;

-- Work that a control order leaves behind when it touches more rows than one transaction should.
CREATE TABLE task_step (
  task INTEGER NOT NULL REFERENCES task (id),
  step TEXT NOT NULL,
  -- How far it came.
  level INTEGER NOT NULL DEFAULT 0,
  idx INTEGER NOT NULL DEFAULT -1,
  -- For a step that concerns one level alone; -1 for all of them.
  only_level INTEGER NOT NULL,
  -- What was finished later is not meant.
  begun_at INTEGER NOT NULL,
  PRIMARY KEY (task, step, only_level)
) STRICT, WITHOUT ROWID;
`
