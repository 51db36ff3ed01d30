import { describe, expect, test } from 'vitest'
import {
  judgeCancellation,
  judgeExpiry,
  judgeRenewal,
  judgeSettlement,
  judgeUndo,
  type LeaseState,
  type ReportedOutcome,
} from '../../src/handoff/rules/settlement.ts'
import { settlement } from '../store/conformance/driver.ts'
import { testPolicy as policy } from '../store/conformance/harness.ts'

const lease = { partition: 7, leaseNumber: 3, secret: 'Zm9vYmFyYmF6cXV4' }

const leaseState = (changes: Partial<LeaseState> = {}): LeaseState => ({
  state: 'leased',
  leaseNumber: lease.leaseNumber,
  secret: lease.secret,
  outcome: null,
  attempts: 0,
  releases: 0,
  taskCancelled: false,
  atLimit: false,
  ...changes,
})

const judge = (at: LeaseState | undefined, reported: Partial<ReportedOutcome>) =>
  judgeSettlement(at, lease, settlement(reported), policy, 1)

describe('a settlement in time', () => {
  test('as done finishes the partition, with the reported records', () => {
    expect(judge(leaseState({ releases: 2 }), { outcome: 'done', records: 5 })).toMatchObject({
      refused: null,
      change: { event: 'finish', to: 'done', outcome: 'done', attempts: 1, wasted: 0, records: 5 },
    })
  })

  test('as failed uses up an attempt and waits for the back-off', () => {
    expect(judge(leaseState({ attempts: 1, releases: 2 }), { outcome: 'failed', reason: 'x' })).toMatchObject(
      {
        change: {
          event: 'postpone',
          to: 'delayed',
          outcome: 'failed',
          attempts: 2,
          releases: 0,
          wasted: 1,
          delayMillis: 2 * policy.backoffMillis,

          reason: 'x',
        },
      },
    )
  })

  test('as failed with the last attempt, or as final, parks', () => {
    const parked = { change: { event: 'park', to: 'parked', outcome: 'failed', wasted: 1, delayMillis: 0 } }
    expect(judge(leaseState({ attempts: 2 }), { outcome: 'failed' })).toMatchObject(parked)
    expect(judge(leaseState(), { outcome: 'failed', final: true })).toMatchObject(parked)
  })

  test('as released uses no attempt; the third in a row is delayed', () => {
    const changes = [0, 1, 2, 3].map((releases) => {
      const verdict = judge(leaseState({ releases }), { outcome: 'released' })
      return verdict.refused === null ? verdict.change : null
    })
    expect(changes).toMatchObject([
      { event: 'return', to: 'ready', delayMillis: 0, releases: 1, wasted: 0 },
      { event: 'return', to: 'ready', delayMillis: 0, releases: 2 },
      { event: 'postpone', to: 'delayed', delayMillis: policy.backoffMillis, releases: 3, attempts: 0 },
      { event: 'postpone', to: 'delayed', delayMillis: 2 * policy.backoffMillis },
    ])
  })

  test('with a delay replaces the back-off, in whole milliseconds', () => {
    const delays = [0, 0.2, 1500].map((retryAfterMillis) => {
      const verdict = judge(leaseState(), { outcome: 'failed', retryAfterMillis })
      return verdict.refused === null ? verdict.change?.delayMillis : null
    })
    expect(delays).toEqual([0, 1, 1500])
  })
})

describe('a lease that was settled before', () => {
  for (const outcome of ['done', 'failed', 'released'] as const) {
    for (const again of ['done', 'failed', 'released'] as const) {
      const expected = outcome === again ? { refused: null, change: null } : { refused: 'lease_settled' }
      test(`${outcome}, then ${again}`, () => {
        for (const taskCancelled of [false, true])
          expect(judge(leaseState({ state: 'done', outcome, taskCancelled }), { outcome: again })).toEqual(
            expected,
          )
      })
    }
  }

  test('by delivery cannot be settled again', () => {
    expect(judge(leaseState({ state: 'done', outcome: 'delivered' }), { outcome: 'done' })).toEqual({
      refused: 'lease_settled',
    })
  })

  test('cannot be renewed', () => {
    for (const outcome of ['done', 'failed', 'released', 'delivered'] as const)
      expect(judgeRenewal(leaseState({ state: 'ready', outcome }), lease)).toEqual({
        refused: 'lease_settled',
      })
  })
})

describe('a lease that expired and was not followed by another', () => {
  for (const state of ['ready', 'delayed', 'parked'] as const) {
    const late = leaseState({ state, outcome: 'expired', attempts: 2 })

    test(`from ${state}: done is done, failed only sets the reason, released has no effect`, () => {
      expect(judge(late, { outcome: 'done' })).toMatchObject({ change: { event: 'finish', to: 'done' } })
      expect(judge(late, { outcome: 'failed', reason: 'x' })).toMatchObject({
        change: { event: null, to: state, outcome: 'failed', attempts: 2, wasted: 0, reason: 'x' },
      })
      expect(judge(late, { outcome: 'failed', final: true })).toMatchObject({
        change: { event: 'park', to: 'parked', attempts: 2, wasted: 0 },
      })
      expect(judge(late, { outcome: 'released' })).toEqual({ refused: null, change: null })
    })

    test(`from ${state}: a renewal revives it as the same attempt`, () => {
      expect(judgeRenewal(late, lease)).toMatchObject({
        change: { event: 'renew', to: 'leased', outcome: null, attempts: 1, wasted: -1 },
      })
    })
  }

  test('is revived with zero attempts if an operator reset them meanwhile', () => {
    expect(
      judgeRenewal(leaseState({ state: 'ready', outcome: 'expired', attempts: 0 }), lease),
    ).toMatchObject({
      change: { attempts: 0 },
    })
  })
})

describe('refusals', () => {
  const cases = [
    ['no such partition', undefined, 'lease_unknown'],
    [
      'a leaseNumber that was never given',
      leaseState({ leaseNumber: lease.leaseNumber - 1 }),
      'lease_unknown',
    ],
    ['another secret', leaseState({ secret: 'AAAAAAAAAAAAAAAA' }), 'lease_unknown'],
    ['a newer lease', leaseState({ leaseNumber: lease.leaseNumber + 1 }), 'lease_lost'],
    [
      'a newer lease, cancelled',
      leaseState({ leaseNumber: lease.leaseNumber + 1, taskCancelled: true }),
      'task_cancelled',
    ],
    ['cancelled while it ran', leaseState({ taskCancelled: true }), 'task_cancelled'],
    [
      'cancelled after it expired',
      leaseState({ state: 'delayed', outcome: 'expired', taskCancelled: true }),
      'task_cancelled',
    ],
  ] as const

  for (const [name, at, code] of cases) {
    test(`${name}: ${code}`, () => {
      for (const outcome of ['done', 'failed', 'released'] as const)
        expect(judge(at, { outcome })).toEqual({ refused: code })
      expect(judgeRenewal(at, lease)).toEqual({ refused: code })
      expect(judgeUndo(at, lease)).toBeNull()
    })
  }
})

describe('expiry and back-off', () => {
  test('an expiry uses up an attempt, sets the reason, and parks after the last one', () => {
    expect(judgeExpiry(leaseState({ attempts: 1 }), policy, 1)).toMatchObject({
      event: 'postpone',
      to: 'delayed',
      outcome: 'expired',
      attempts: 2,
      wasted: 1,
      delayMillis: 2 * policy.backoffMillis,
      reason: 'the lease of attempt 2 expired before it was settled',
    })
    expect(judgeExpiry(leaseState({ attempts: 2 }), policy, 1)).toMatchObject({ event: 'park', to: 'parked' })
  })

  test('in a cancelled task end without wasting an attempt', () => {
    for (const state of ['leased', 'delayed'] as const)
      expect(judgeCancellation(leaseState({ state, taskCancelled: true }))).toMatchObject({
        to: 'cancelled',
        wasted: 0,
      })
  })
})

describe('undo', () => {
  test('ends a valid lease as if it had never been granted', () => {
    expect(judgeUndo(leaseState({ attempts: 1, releases: 2 }), lease)).toMatchObject({
      event: 'return',
      to: 'ready',
      attempts: 1,
      releases: 2,
      wasted: 0,
    })
  })

  test('does not change a lease that is no longer valid', () => {
    for (const state of ['ready', 'delayed', 'parked', 'done', 'cancelled'] as const)
      expect(judgeUndo(leaseState({ state, outcome: 'expired' }), lease)).toBeNull()
  })
})
