/**
 * What a key was given is told by partitions and secrets instead of lease ids, so that the statement that claims can
 * write it: an id has its numbers in base 36. See pull-keys.ts.
 */
export const keysOfPartitions = `
ALTER TABLE baton.pull_key ADD COLUMN partitions bigint[], ADD COLUMN secrets text[];
UPDATE baton.pull_key SET
  partitions = ARRAY(
    SELECT (
      SELECT sum((strpos('0123456789abcdefghijklmnopqrstuvwxyz', digit) - 1) * 36::numeric ^ (length(number) - place))
      FROM regexp_split_to_table(number, '') WITH ORDINALITY AS d (digit, place)
    )::bigint
    FROM unnest(leases) WITH ORDINALITY AS l (lease, position), split_part(lease, '-', 1) AS number ORDER BY position
  ),
  secrets = ARRAY(SELECT right(lease, 16) FROM unnest(leases) WITH ORDINALITY AS l (lease, position) ORDER BY position);
ALTER TABLE baton.pull_key DROP COLUMN leases, ALTER COLUMN partitions SET NOT NULL, ALTER COLUMN secrets SET NOT NULL;
`
