/**
 * The least a durable hand-off on SQLite can be: one table, the partial index that claims read, and the
 * identity that makes a call-back repeatable. Everything is set-based: one statement per transaction for
 * all claims, one for all settles, one for a whole array of descriptors. Within a level it hands out by
 * arrival, so that neighbours on disk go together; sharing fairly between tasks costs Baton that locality.
 */
export const BARE_SCHEMA = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE partition (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    table_name TEXT NOT NULL,
    name TEXT NOT NULL,
    records INTEGER NOT NULL,
    level INTEGER NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    lease_id TEXT,
    expires_at INTEGER,
    UNIQUE (task_id, name)
  ) STRICT;
  CREATE INDEX ready ON partition (level, id) WHERE state = 0;
`

export const CLAIM = `
  UPDATE partition
  SET state = 1, attempt = attempt + 1, lease_id = lower(hex(randomblob(16))), expires_at = ?
  WHERE id IN (SELECT id FROM partition WHERE state = 0 ORDER BY level, id LIMIT ?)
  RETURNING id, task_id, table_name, name, records, level, attempt, lease_id
`

export const SETTLE = `
  UPDATE partition SET state = 2, expires_at = NULL
  FROM (SELECT value ->> 0 AS id, value ->> 1 AS lease_id FROM json_each(?)) AS settled
  WHERE partition.id = settled.id AND partition.lease_id = settled.lease_id AND state = 1
`

export const INSERT = `
  INSERT INTO partition (task_id, table_name, name, records, level)
  SELECT value ->> 'taskId', value ->> 'computeTableName', value ->> 'partition_name',
    value ->> 'record_count', value ->> 'priorityLevel'
  FROM json_each(?) WHERE true
  ON CONFLICT DO NOTHING
`
