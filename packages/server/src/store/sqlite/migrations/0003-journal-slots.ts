/**
 * A row of the journal is written over when its turn comes again, instead of being deleted and appended anew: no page
 * is freed or taken, and a transaction changes one. `entry` begins with the row's number in the sequence, see
 * `journal.ts`.
 */
export const journalSlots = `
ALTER TABLE journal RENAME TO appended;
CREATE TABLE journal (
  slot INTEGER PRIMARY KEY,
  entry TEXT NOT NULL
) STRICT;
INSERT INTO journal (slot, entry)
  SELECT row_number() OVER (ORDER BY seq) - 1, printf('%015d.', row_number() OVER (ORDER BY seq)) || entry
  FROM appended;
DROP TABLE appended;
`
