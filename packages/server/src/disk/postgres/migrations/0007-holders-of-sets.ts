/** Leases of one claim are one set, whoever has them: it has the holders of all. See due-sets.ts. */
export const holdersOfSets = `
ALTER TABLE baton.due ADD COLUMN holders bigint[];
UPDATE baton.due SET holders = ARRAY[holder];
ALTER TABLE baton.due DROP COLUMN holder, ALTER COLUMN holders SET NOT NULL;
`
