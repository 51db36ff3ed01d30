import { type FailureOutcome, MAX_LISTED_FAILURES } from '@baton/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { failureReason } from '../../src/handoff/rules/failure-reason.ts'
import { countFailure, countParked, type FailureGroup, uncountEnd } from '../../src/handoff/rules/failures.ts'

type Groups = readonly FailureGroup[]

const failed = (groups: Groups, word: string, now = 0) =>
  countFailure(groups, 'failed', failureReason('failed', word), now)

/** Words: numbers would be masked. */
const wordOf = (at: number) =>
  `because ${String.fromCharCode(97 + (at % 26))}${'x'.repeat(Math.floor(at / 26))}`

test('the rarest groups without parked partitions give way, and count as others', () => {
  let groups: Groups = []
  const keys = new Set<string>()
  for (let at = 0; at < 40; at += 1) {
    const counted = failed(groups, wordOf(at), at)
    groups = counted.groups
    keys.add(counted.key)
    // Every second one is parked.
    if (at % 2 === 0) groups = countParked(groups, counted.key, 1, 10)
  }
  const own = groups.filter(({ key }) => key !== 'other')
  expect(own).toHaveLength(MAX_LISTED_FAILURES - 3)
  expect(own.every(({ parked }) => parked.partitions === 1)).toBe(true)
  const other = groups.find(({ key }) => key === 'other')
  expect(other).toMatchObject({ outcome: 'failed', reason: null, firstAt: 1, lastAt: 39 })
  expect(other?.parked.partitions).toBe(20 - own.length)
  expect(keys).toContain('other')
  // What expired always has a group.
  const { groups: all } = countFailure(groups, 'expired', failureReason('expired', null), 41)
  expect(all.find(({ key }) => key === 'expired')?.count).toBe(1)
})

test('counts add up, and what a group says is parked is what has its key, whatever happens', () => {
  const outcome = fc.constantFrom<FailureOutcome>('failed', 'failed', 'failed', 'expired', 'revoked')
  const step = fc.oneof(
    fc.record({ kind: fc.constant('fail' as const), outcome, word: fc.nat(60), parks: fc.boolean() }),
    fc.record({ kind: fc.constant('unpark' as const), at: fc.nat(200) }),
    fc.record({ kind: fc.constant('renew' as const) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      let groups: Groups = []
      let attempts = 0
      let expired = 0
      const parked: { key: string; records: number }[] = []
      for (const [now, one] of steps.entries()) {
        if (one.kind === 'fail') {
          const { outcome: ended, word } = one
          const counted = countFailure(groups, ended, failureReason(ended, wordOf(word)), now)
          groups = counted.groups
          attempts += 1
          if (ended === 'expired') expired += 1
          if (one.parks) {
            parked.push({ key: counted.key, records: word })
            groups = countParked(groups, counted.key, 1, word)
          }
        } else if (one.kind === 'unpark') {
          const [gone] = parked.splice(one.at, 1)
          if (gone !== undefined) groups = countParked(groups, gone.key, -1, gone.records)
        } else if (expired > 0) {
          groups = uncountEnd(groups, 'expired')
          attempts -= 1
          expired -= 1
        }
        expect(groups.length).toBeLessThanOrEqual(MAX_LISTED_FAILURES)
      }
      expect(groups.reduce((sum, { count }) => sum + count, 0)).toBe(attempts)
      expect(new Set(groups.map(({ key }) => key)).size).toBe(groups.length)
      for (const { key, parked: kept } of groups) {
        const found = parked.filter((one) => one.key === key)
        const records = found.reduce((sum, one) => sum + one.records, 0)
        expect(kept).toEqual({ partitions: found.length, records })
      }
      expect(groups.reduce((sum, group) => sum + group.parked.partitions, 0)).toBe(parked.length)
    }),
  )
})
