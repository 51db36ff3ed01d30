import { HAS_ROWS } from '../task-reads.ts'
import { laneHasWork, partitionIs, taskHas } from './conditions.ts'
import { sqlite } from './dialect.ts'

/**
 * Rows of partitions are written before those of their lanes and tasks, which are flushed later, so there are no
 * foreign keys.
 *
 * A waiting partition is never rewritten. Two indexes cover all partitions, one by index and one by arrival
 * (the rowid is part of every index). The others are partial, with only the rows that matter.
 */
export const schema = `
${sqlite.tasks.create()} STRICT;
CREATE UNIQUE INDEX task_by_name ON task (task_id);
CREATE INDEX task_by_state ON task (state, id);
CREATE INDEX task_with_parked ON task (id) WHERE ${taskHas.parked};
CREATE INDEX task_to_purge ON task (finished_at, id) WHERE ${taskHas.endedUnpurged};
CREATE INDEX task_purged ON task (purged_at, id) WHERE purged_at IS NOT NULL;
CREATE INDEX task_open ON task (id) WHERE ${taskHas.openWork};

${sqlite.lanes.create()} STRICT;
CREATE UNIQUE INDEX lane_identity ON lane (task, level);
CREATE INDEX lane_open ON lane (id) WHERE ${laneHasWork};
CREATE INDEX lane_with_parked ON lane (task, level) WHERE parked_partitions > 0;
CREATE INDEX lane_with_rows ON lane (task, level) WHERE ${HAS_ROWS};

-- What waits by compute table in lanes that have several.
${sqlite.laneTables.create()} STRICT, WITHOUT ROWID;

-- The indexes that were ever called back on a lane, as ranges: they show gaps, and they outlive the
-- partitions, so that a late repeat of a purged call-back is recognised.
${sqlite.ranges.create()} STRICT, WITHOUT ROWID;

${sqlite.levels.create()} STRICT;

${sqlite.partitions.create()} STRICT;
CREATE UNIQUE INDEX partition_identity ON partition (lane, idx);
CREATE INDEX partition_arrival ON partition (lane);
CREATE INDEX partition_of_table ON partition (lane, compute_table) WHERE ${partitionIs.inMixedLane};
CREATE INDEX partition_returned ON partition (lane, due_at) WHERE ${partitionIs.returned};
CREATE INDEX partition_leased ON partition (due_at) WHERE state = 'leased';
CREATE INDEX partition_delayed ON partition (due_at) WHERE state = 'delayed';
CREATE INDEX partition_parked ON partition (lane, idx) WHERE state = 'parked';
CREATE INDEX partition_begun ON partition (lane, idx) WHERE ${partitionIs.begun};
CREATE INDEX partition_parked_as ON partition (lane, failure, idx) WHERE state = 'parked';
CREATE INDEX partition_failed ON partition (lane, failure, idx) WHERE failure IS NOT NULL;
CREATE INDEX partition_mismatch ON partition (lane, idx) WHERE ${partitionIs.mismatch};

-- Of the partitions that have one.
${sqlite.checkpoints.create()} STRICT;

-- The compute tables of a task, in the order of their first use.
${sqlite.tables.create('position INTEGER PRIMARY KEY')} STRICT;
CREATE UNIQUE INDEX task_table_identity ON task_table (task, name);
CREATE INDEX task_table_order ON task_table (task);

-- Of compute tables that do not have the default.
${sqlite.tableSettings.create()} STRICT, WITHOUT ROWID;

${sqlite.keys.create()} STRICT, WITHOUT ROWID;
CREATE INDEX pull_key_to_forget ON pull_key (forget_at);

${sqlite.instances.create()} STRICT, WITHOUT ROWID;
CREATE INDEX instance_to_forget ON instance (last_seen_at);
CREATE INDEX instance_lost ON instance (instance_id) WHERE last_seen_at < lost_unless_seen_since;
CREATE INDEX instance_paused ON instance (instance_id) WHERE paused_at IS NOT NULL;
CREATE INDEX instance_ended ON instance (last_seen_at) WHERE draining = 1;

${sqlite.produced.create()} STRICT, WITHOUT ROWID;
CREATE INDEX produced_task_newest ON produced_task (instance, at);

-- What became done per task and level, by minute and by hour. Levels from THROUGHPUT_LEVELS up share one row.
${sqlite.throughput.create()} STRICT, WITHOUT ROWID;
CREATE INDEX throughput_by_age ON throughput (step, at);

-- Who changed what.
${sqlite.audit.create()} STRICT;
CREATE INDEX audit_of_task ON audit (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX audit_by_name ON audit (name) WHERE name IS NOT NULL;

${sqlite.subscriptions.create()} STRICT, WITHOUT ROWID;

-- Events for subscriptions, one row for each subscription. Most are written before their first attempt, with
-- a progress of null, so that no JSON is parsed then. Pending is null when nothing is left to do.
${sqlite.deliveries.create(`pending INTEGER GENERATED ALWAYS AS (
    CASE WHEN progress IS NULL OR json_extract(progress, '$.state') = 'pending' THEN 1 END) STORED`)} STRICT, WITHOUT ROWID;
CREATE INDEX delivery_pending ON delivery (subscription, event) WHERE pending IS NOT NULL;

-- Entries that are durable and not flushed, and slots that are free to be used again. See sqlite-connection.ts.
CREATE TABLE entry_slot (
  slot INTEGER PRIMARY KEY,
  number INTEGER NOT NULL,
  part INTEGER NOT NULL,
  size INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;

-- How far the rows have followed the entries, how often rows were written, and the term of the process that
-- writes.
CREATE TABLE flushed (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  term TEXT NOT NULL DEFAULT '',
  number INTEGER NOT NULL,
  writes INTEGER NOT NULL DEFAULT 0,
  next_task INTEGER NOT NULL,
  next_lane INTEGER NOT NULL,
  next_partition INTEGER NOT NULL,
  next_event INTEGER NOT NULL
) STRICT;
INSERT INTO flushed (id, number, next_task, next_lane, next_partition, next_event) VALUES (1, 0, 1, 1, 1, 1);

-- Written to find out whether a commit would succeed.
CREATE TABLE probe (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  probed_at INTEGER NOT NULL
) STRICT;
`
