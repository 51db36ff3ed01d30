/**
 * A partition that waits is ready or held by where its place is, and its row does not say which. So filling a window moves
 * places and leaves rows alone. What only matters while it waits stands in the place. See queues.ts.
 */
export const waitingByPlace = `
ALTER TABLE baton.partition ADD COLUMN stay integer NOT NULL DEFAULT 0;

ALTER TABLE baton.ready ADD COLUMN stay integer NOT NULL DEFAULT 0, ADD COLUMN fresh boolean NOT NULL DEFAULT true,
  ADD COLUMN refill boolean NOT NULL DEFAULT false;
DELETE FROM baton.ready r WHERE NOT EXISTS (
  SELECT FROM baton.partition p WHERE p.id = r.id AND p.state = 'ready' AND p.rank = r.rank);
UPDATE baton.ready r SET fresh = p.fresh, refill = p.refill FROM baton.partition p
  WHERE p.id = r.id AND (p.refill OR NOT p.fresh);
DROP INDEX baton.ready_in_order, baton.ready_of_lane;
CREATE INDEX ready_in_order ON baton.ready (level, rank, id);
CREATE INDEX ready_of_lane ON baton.ready (lane, id);

ALTER TABLE baton.held ADD COLUMN stay integer NOT NULL DEFAULT 0, ADD COLUMN record_count bigint;
UPDATE baton.held h SET record_count = p.record_count FROM baton.partition p WHERE p.id = h.id;
ALTER TABLE baton.held ALTER COLUMN record_count SET NOT NULL;

UPDATE baton.partition SET state = 'held' WHERE state = 'ready';
ALTER TABLE baton.partition DROP COLUMN refill;
`
