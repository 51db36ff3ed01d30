/** Tasks that count as purged while some of their rows are left to be removed. See tidy.ts. */
export const purging = `
CREATE TABLE purging (task INTEGER PRIMARY KEY REFERENCES task (id)) STRICT;
`
