/**
 * Leases and finished partitions are noted here first, one row per transaction, and written into their own rows
 * many at a time. What stands here when the file is opened is written up then.
 */
export const journal = `
CREATE TABLE journal (
  seq INTEGER PRIMARY KEY,
  entry TEXT NOT NULL
) STRICT;
`
