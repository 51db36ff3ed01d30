import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  backoffMillis,
  expiryGraceMillis,
  LEASE_MAX_MILLIS,
  leaseMillis,
  type Policy,
} from '../../src/handoff/rules/policy.ts'

/** The defaults of the design. */
const policy: Policy = {
  delivery: 'at-least-once',
  leaseMillis: 300_000,
  leaseMillisPerThousandRecords: 0,
  maxAttempts: 5,
  backoffMillis: 10_000,
  backoffMaxMillis: 600_000,
  levelBarrier: false,
}

test('no back-off is none after any number of attempts', () => {
  expect(backoffMillis({ ...policy, backoffMillis: 0 }, 5, 1)).toBe(0)
})

describe('the length of a lease', () => {
  test('is the same for all, unless records count', () => {
    expect(leaseMillis(policy, 10 ** 9)).toBe(300_000)
    const perRecords = { ...policy, leaseMillisPerThousandRecords: 250 }
    expect([0, 1, 1000, 40_000].map((records) => leaseMillis(perRecords, records))).toEqual([
      300_000, 300_000, 300_250, 310_000,
    ])
  })

  test('is a whole number of milliseconds and at most twelve hours', () => {
    const perRecords = { ...policy, leaseMillis: 100.4, leaseMillisPerThousandRecords: 0.3 }
    fc.assert(
      fc.property(fc.maxSafeNat(), (records) => {
        const length = leaseMillis(perRecords, records)
        expect(Number.isInteger(length)).toBe(true)
        expect(length).toBeLessThanOrEqual(LEASE_MAX_MILLIS)
      }),
    )
  })
})

test('the grace period before expiry is the length of a lease, at most a minute', () => {
  expect(expiryGraceMillis(policy)).toBe(60_000)
  expect(expiryGraceMillis({ ...policy, leaseMillis: 5000 })).toBe(5000)
})
