import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  backoffMillis,
  expiryGraceMillis,
  LEASE_MAX_MILLIS,
  leaseMillis,
  nextFencingToken,
  type Policy,
  releaseBackoffMillis,
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

test.each([
  { of: 'the first lease', latest: null, now: 5000, token: 5000 },
  { of: 'a lease in a later millisecond', latest: 5000, now: 6000, token: 6000 },
  { of: 'a lease in the same millisecond', latest: 5000, now: 5000, token: 5001 },
  { of: 'a lease after the clock was set back', latest: 5000, now: 4000, token: 5001 },
])('the fencing token of $of is $token', ({ latest, now, token }) => {
  expect(nextFencingToken(latest, now)).toBe(token)
})

describe('the back-off', () => {
  test('doubles from ten seconds to ten minutes', () => {
    const full = [1, 2, 3, 4, 5, 6, 7, 8, 100, 10_000].map((used) => backoffMillis(policy, used, 1))
    expect(full.map((millis) => millis / 1000)).toEqual([10, 20, 40, 80, 160, 320, 600, 600, 600, 600])
  })

  test('is random in the upper half: never shorter than half, never longer than the whole', () => {
    fc.assert(
      fc.property(fc.nat(60), fc.double({ min: 0, max: 1, noNaN: true }), (used, random) => {
        const whole = backoffMillis(policy, used, 1)
        const drawn = backoffMillis(policy, used, random)
        expect(Number.isInteger(drawn)).toBe(true)
        expect(drawn).toBeGreaterThanOrEqual(whole / 2)
        expect(drawn).toBeLessThanOrEqual(whole)
      }),
    )
  })

  test('of releases begins with the third in a row', () => {
    const waits = [1, 2, 3, 4, 5].map((releases) => releaseBackoffMillis(policy, releases, 1))
    expect(waits).toEqual([0, 0, 10_000, 20_000, 40_000])
  })

  test('of zero is zero', () => {
    expect(backoffMillis({ ...policy, backoffMillis: 0 }, 5, 1)).toBe(0)
  })
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
