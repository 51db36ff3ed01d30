export const outcomes = ['done', 'failed', 'released'] as const
export type Outcome = (typeof outcomes)[number]
