/** What the time left of a task depends on most. */
export const etaReasons = ['pace', 'lease', 'back-off'] as const
export type EtaReason = (typeof etaReasons)[number]
