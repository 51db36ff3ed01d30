/** Tasks that count as purged while some of their rows are left to be removed. See tidy.ts. */
export const purging = `
CREATE TABLE baton.purging (task bigint PRIMARY KEY REFERENCES baton.task (id));
`
