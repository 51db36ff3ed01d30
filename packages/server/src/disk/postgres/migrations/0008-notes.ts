/**
 * What a node that is alone has handed out and settled and not written up yet. See alone/.
 */
export const notes = `
CREATE TABLE baton.note (
  number bigint PRIMARY KEY,
  at bigint NOT NULL,
  body text COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, vacuum_truncate = off);
-- Most bodies fit the row; pressing those that do not would take longer than writing them.
ALTER TABLE baton.note ALTER COLUMN body SET STORAGE EXTERNAL;

-- Each number begins a run of a million notes: those of two nodes, or of two times, are never mistaken for each other.
CREATE SEQUENCE baton.note_run INCREMENT BY 1000000;

-- Until then nodes are about whose sessions a pooler lends by transaction, so that they cannot keep a lock.
CREATE TABLE baton.pooled (until bigint NOT NULL);
`
