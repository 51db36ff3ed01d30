import { expect, test } from 'vitest'
import { DistinctSettlements } from '../../src/handoff/distinct-settlements.ts'
import type { RefusalCode } from '../../src/handoff/rules/settlement.ts'
import { settlement } from '../store/conformance/driver.ts'

const first = '1-1-AAAAAAAAAAAAAAAA'
const second = '2-1-AAAAAAAAAAAAAAAA'
const done = settlement({ outcome: 'done' })
const failed = settlement({ outcome: 'failed' })
const released = settlement({ outcome: 'released' })

/** One line per settlement: leases with the code of their refusal, in the order of both lists. */
function answer(settlements: { leaseId: string; reported: typeof done }[], verdicts: (RefusalCode | null)[]) {
  const mentions = new DistinctSettlements(settlements)
  expect(mentions.settlements).toHaveLength(verdicts.length)
  const { settled, refused } = mentions.outcome(verdicts)
  return { settled, refused: refused.map(({ leaseId, code }) => [leaseId, code]) }
}

test('each lease is judged once, by its first mention', () => {
  const settlements = [
    { leaseId: first, reported: failed },
    { leaseId: second, reported: done },
    { leaseId: first, reported: done },
    { leaseId: first, reported: failed },
  ]
  expect(answer(settlements, [null, null])).toEqual({
    settled: [first, second, first],
    refused: [[first, 'lease_settled']],
  })
})

test('a late release changes nothing, and still takes precedence over later settlements in the array', () => {
  const settlements = [
    { leaseId: first, reported: released },
    { leaseId: first, reported: done },
  ]
  expect(answer(settlements, [null])).toEqual({ settled: [first], refused: [[first, 'lease_settled']] })
})

test('every settlement of a refused lease is refused with the reason', () => {
  const settlements = [
    { leaseId: first, reported: done },
    { leaseId: first, reported: failed },
  ]
  expect(answer(settlements, ['lease_lost'])).toEqual({
    settled: [],
    refused: [
      [first, 'lease_lost'],
      [first, 'lease_lost'],
    ],
  })
})

test('an id that this service cannot have issued is unknown without a request to the store', () => {
  const settlements = [
    { leaseId: 'nonsense', reported: done },
    { leaseId: first, reported: done },
    { leaseId: 'nonsense', reported: failed },
  ]
  expect(answer(settlements, [null])).toEqual({
    settled: [first],
    refused: [
      ['nonsense', 'lease_unknown'],
      ['nonsense', 'lease_unknown'],
    ],
  })
})
