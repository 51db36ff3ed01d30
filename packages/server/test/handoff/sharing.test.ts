import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Portion, share, wouldTake } from '../../src/handoff/rules/sharing.ts'

interface Candidate {
  readonly id: number
  readonly recordCount: number
}

const candidates = (...recordCounts: number[]) => recordCounts.map((recordCount, id) => ({ id, recordCount }))
const ids = (portion: Portion<Candidate>) => portion.taken.map(({ id }) => id)

describe('sharing what one claim brought', () => {
  test('pulls are served in the order of their arrival, candidates in theirs', () => {
    const portions = [2, 3].map((batch) => new Portion<Candidate>({ batch, records: null }))
    expect(share(candidates(1, 1, 1, 1), portions)).toBe(4)
    expect(portions.map(ids)).toEqual([
      [0, 1],
      [2, 3],
    ])
    expect(portions.map(({ room }) => room)).toEqual([0, 1])
  })

  test('a budget is full once it is met, and the first partition is always given', () => {
    const portions = [0, 100, 101].map((records) => new Portion<Candidate>({ batch: 9, records }))
    share(candidates(500, 100, 100, 100, 7), portions)
    expect(portions.map(ids)).toEqual([[0], [1], [2, 3]])
  })

  test('candidates that nobody wants stay', () => {
    const portion = new Portion({ batch: 1, records: null })
    expect(share(candidates(1, 1, 1), [portion])).toBe(1)
    expect(portion.isFull).toBe(true)
  })

  test('a second claim goes on where the first ended', () => {
    const portions = [new Portion({ batch: 3, records: 250 }), new Portion({ batch: 1, records: null })]
    share(candidates(100), portions)
    share(candidates(100, 100, 100), portions)
    expect(portions.map(({ taken }) => taken.length)).toEqual([3, 1])
  })

  test('what would be taken now can be told, also by who has taken some before', () => {
    const portions = [new Portion({ batch: 3, records: 250 }), new Portion({ batch: 1, records: null })]
    share(candidates(100, 100), portions)
    expect(wouldTake(candidates(50, 50, 50), portions)).toBe(2)
    expect(portions.map(({ taken }) => taken.length)).toEqual([2, 0])
  })

  test('nobody gets more than asked for, nobody goes without while there is something', () => {
    const appetite = fc.record({
      batch: fc.integer({ min: 1, max: 6 }),
      records: fc.option(fc.nat(300), { nil: null }),
    })
    fc.assert(
      fc.property(fc.array(appetite, { maxLength: 6 }), fc.array(fc.nat(200)), (appetites, sizes) => {
        const portions = appetites.map((one) => new Portion<Candidate>(one))
        const foreseen = wouldTake(candidates(...sizes), portions)
        const taken = share(candidates(...sizes), portions)
        expect(foreseen).toBe(taken)
        expect(portions.flatMap(ids)).toEqual(Array.from({ length: taken }, (_, id) => id))
        for (const [at, portion] of portions.entries()) {
          const { batch, records } = appetites[at] ?? { batch: 0, records: null }
          expect(portion.taken.length).toBeLessThanOrEqual(batch)
          const beforeLast = portion.taken.slice(0, -1).reduce((sum, one) => sum + one.recordCount, 0)
          if (records !== null && portion.taken.length > 1) expect(beforeLast).toBeLessThan(records)
          if (taken < sizes.length) expect(portion.isFull).toBe(true)
        }
      }),
    )
  })
})
