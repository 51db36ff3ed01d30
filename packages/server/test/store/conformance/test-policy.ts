import type { Policy } from '../../../src/handoff/rules/policy.ts'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

/** Minutes where the defaults have seconds, so that no rounding error looks like a rule. */
export const testPolicy: Policy = {
  delivery: 'at-least-once',
  leaseMillis: 10 * MINUTE,
  leaseMillisPerThousandRecords: 0,
  maxAttempts: 3,
  backoffMillis: 2 * MINUTE,
  backoffMaxMillis: 20 * MINUTE,
  levelBarrier: false,
}
