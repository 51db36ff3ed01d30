export const attemptOutcomes = ['done', 'failed', 'released', 'expired', 'delivered'] as const
export type AttemptOutcome = (typeof attemptOutcomes)[number]

export const failureOutcomes = ['failed', 'expired'] as const
export type FailureOutcome = (typeof failureOutcomes)[number]
