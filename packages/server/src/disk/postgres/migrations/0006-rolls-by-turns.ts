/**
 * When counters were last folded in, by whichever node: those that share a database take turns. A sequence, because
 * writing it leaves nothing behind to be swept up. See roller.ts.
 */
export const rollsByTurns = `
CREATE SEQUENCE baton.rolled_at MINVALUE 0 START 0;
`
