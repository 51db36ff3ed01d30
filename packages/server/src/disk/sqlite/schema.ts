import { partitionStates } from '../../handoff/rules/life-cycle.ts'
import { deliverySchema } from './outbox-rows.ts'
import { keys, lanes, laneTables, levels, partitions, tableSettings, tasks } from './tables.ts'
import { throughputSchema } from './throughput-rows.ts'

const sum = (states: readonly string[]) => states.map((state) => `${state}_partitions`).join(' + ')

/**
 * In SQL, of a lane. Partial indexes and queries share these conditions: SQLite uses a partial index only if
 * the query repeats its condition.
 */
export const laneHas = {
  openWork: 'ready_partitions + leased_partitions + delayed_partitions > 0',
  parked: 'parked_partitions > 0',
  rows: `${sum(partitionStates)} - purged > 0`,
}
export const taskHas = {
  parked: 'parked_partitions > 0 AND cancelled = 0',
  openWork: '(finished_at IS NULL OR leased_partitions + delayed_partitions > 0)',
  unfinishedWork: '(reruns IS NOT NULL OR staging IS NOT NULL)',
  endedUnpurged: 'finished_at IS NOT NULL AND purged_at IS NULL',
}
export const partitionIs = {
  fresh: `state = 'ready' AND due_at IS NULL`,
  returned: `state = 'ready' AND due_at IS NOT NULL`,
  ofSeveral: 'of_several = 1',
  mismatch: 'reported_records IS NOT NULL AND reported_records <> record_count',
}

/**
 * There are no foreign keys: rows of partitions are written before those of their lanes, and lanes before
 * tasks, because they are flushed later.
 *
 * A waiting partition is never rewritten. Two indexes cover all partitions, one by index and one by arrival
 * (the rowid is part of every index). The others are partial, with only the rows that matter.
 */
export const schema = `
CREATE TABLE task (
  ${tasks.declarations}
) STRICT;
CREATE INDEX task_by_state ON task (state, id);
CREATE INDEX task_with_parked ON task (id) WHERE ${taskHas.parked};
CREATE INDEX task_to_purge ON task (finished_at) WHERE ${taskHas.endedUnpurged};
CREATE INDEX task_open ON task (id) WHERE ${taskHas.openWork};
CREATE INDEX task_with_work ON task (id) WHERE ${taskHas.unfinishedWork};

-- Tasks that count as purged and may have rows left.
CREATE TABLE purging (task INTEGER PRIMARY KEY) STRICT;

CREATE TABLE lane (
  ${lanes.declarations}
) STRICT;
CREATE UNIQUE INDEX lane_identity ON lane (task, level);
CREATE INDEX lane_open ON lane (id) WHERE ${laneHas.openWork};
CREATE INDEX lane_with_parked ON lane (task, level) WHERE ${laneHas.parked};
CREATE INDEX lane_with_rows ON lane (task, level) WHERE ${laneHas.rows};

-- What waits by compute table in lanes that have several.
CREATE TABLE lane_table (
  ${laneTables.declarations},
  PRIMARY KEY (lane, name)
) STRICT, WITHOUT ROWID;

-- The indexes that were ever called back on a lane, as ranges: they show gaps, and they outlive the
-- partitions, so that a late repeat of a purged call-back is recognised.
CREATE TABLE lane_range (
  lane INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY (lane, first)
) STRICT, WITHOUT ROWID;

CREATE TABLE level (
  ${levels.declarations}
) STRICT;

CREATE TABLE partition (
  ${partitions.declarations}
) STRICT;
CREATE UNIQUE INDEX partition_identity ON partition (lane, idx);
CREATE INDEX partition_arrival ON partition (lane);
CREATE INDEX partition_of_table ON partition (lane, compute_table) WHERE ${partitionIs.ofSeveral};
CREATE INDEX partition_returned ON partition (lane, due_at) WHERE ${partitionIs.returned};
CREATE INDEX partition_leased ON partition (due_at) WHERE state = 'leased';
CREATE INDEX partition_delayed ON partition (due_at) WHERE state = 'delayed';
CREATE INDEX partition_holder ON partition (holder, due_at) WHERE state = 'leased';
CREATE INDEX partition_parked ON partition (lane, idx) WHERE state = 'parked';
CREATE INDEX partition_mismatch ON partition (lane, idx) WHERE ${partitionIs.mismatch};

-- The compute tables of a task; ids are the order of their first use.
CREATE TABLE task_table (
  id INTEGER PRIMARY KEY,
  task INTEGER NOT NULL,
  name TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX task_table_identity ON task_table (task, name);
CREATE INDEX task_table_order ON task_table (task);

-- Of compute tables that do not have the default.
CREATE TABLE table_settings (
  ${tableSettings.declarations}
) STRICT, WITHOUT ROWID;

CREATE TABLE pull_key (
  ${keys.declarations}
) STRICT, WITHOUT ROWID;
CREATE INDEX pull_key_to_forget ON pull_key (forget_at);

CREATE TABLE instance (
  instance_id TEXT NOT NULL PRIMARY KEY,
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
) STRICT, WITHOUT ROWID;
CREATE INDEX instance_to_forget ON instance (last_seen_at);
CREATE INDEX instance_ended ON instance (last_seen_at) WHERE draining = 1;

CREATE TABLE produced_task (
  instance TEXT NOT NULL,
  task INTEGER NOT NULL,
  last_call_back_at INTEGER NOT NULL,
  PRIMARY KEY (instance, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX produced_task_newest ON produced_task (instance, last_call_back_at);

-- Partitions finished per task and second: what the rate and the time left are read from.
CREATE TABLE pace (
  task INTEGER NOT NULL,
  second INTEGER NOT NULL,
  partitions INTEGER NOT NULL,
  records INTEGER NOT NULL,
  PRIMARY KEY (task, second)
) STRICT, WITHOUT ROWID;
${throughputSchema}
CREATE TABLE subscription (
  id TEXT NOT NULL PRIMARY KEY,
  body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

${deliverySchema}
-- Entries that are durable and not flushed, and slots that are free to be used again. See sqlite-connection.ts.
CREATE TABLE entry_slot (
  slot INTEGER PRIMARY KEY,
  number INTEGER NOT NULL,
  part INTEGER NOT NULL,
  size INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;

-- The term of the process that writes, the last entry that was flushed, and the next ids as of then.
CREATE TABLE head (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  term TEXT NOT NULL DEFAULT '',
  flushed INTEGER NOT NULL,
  next_task INTEGER NOT NULL,
  next_lane INTEGER NOT NULL,
  next_partition INTEGER NOT NULL,
  next_event INTEGER NOT NULL
) STRICT;
INSERT INTO head (id, flushed, next_task, next_lane, next_partition, next_event) VALUES (1, 0, 1, 1, 1, 1);

-- Written to find out whether a commit would succeed.
CREATE TABLE probe (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  probed_at INTEGER NOT NULL
) STRICT;
`
