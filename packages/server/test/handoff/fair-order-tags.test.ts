import { describe, expect, test } from 'vitest'
import {
  advance,
  cost,
  drain,
  type LaneTags,
  type LevelTime,
  rankFresh,
  rankRetry,
  setBack,
} from '../../src/handoff/rules/fair-order.ts'

const level = (virtual = 0n, served = 0n): LevelTime => ({ virtual, served })
const lane = (finish = 0n, retryFinish = 0n): LaneTags => ({ finish, retryFinish })

test('a partition costs its records, at least one and at most a thousand million', () => {
  expect([0, 1, 25_000, 10 ** 9, 10 ** 9 + 1, Number.MAX_SAFE_INTEGER].map(cost)).toEqual([
    1n,
    1n,
    25_000n,
    1_000_000_000n,
    1_000_000_000n,
    1_000_000_000n,
  ])
})

describe('a partition that becomes eligible', () => {
  test('starts where its lane ended, and moves that end on by its cost', () => {
    const tags = lane()
    expect([30, 0, 50].map((records) => rankFresh(level(), tags, records))).toEqual([0n, 30n, 31n])
    expect(tags).toEqual(lane(81n))
  })

  test('never starts in the past: a lane that was idle gets nothing for it', () => {
    const tags = lane(10n)
    expect(rankFresh(level(500n), tags, 7)).toBe(500n)
    expect(tags.finish).toBe(507n)
  })

  test('after a failure starts by the second tag, and leaves the first alone', () => {
    const tags = lane(900n)
    expect(rankRetry(level(100n), tags, 40)).toBe(100n)
    expect(rankRetry(level(100n), tags, 40)).toBe(140n)
    expect(tags).toEqual(lane(900n, 180n))
  })
})

describe('the time of a level', () => {
  test('moves to the rank of what is handed out first, and never back', () => {
    const time = level()
    advance(time, 70n, 5)
    advance(time, 20n, 100)
    expect(time).toEqual(level(70n, 120n))
  })

  test('jumps to the end of what was served once nothing waits: whatever was owed is settled', () => {
    const time = level(70n, 120n)
    drain(time)
    expect(time.virtual).toBe(120n)
    drain(time)
    expect(time.virtual).toBe(120n)
  })

  test('is exact far beyond what a number can tell apart', () => {
    const years = 2n ** 60n
    const time = level(years)
    const tags = lane()
    expect(rankFresh(time, tags, 1)).toBe(years)
    expect(rankFresh(time, tags, 1)).toBe(years + 1n)
  })
})

test('a lane that is held gives back the places that were not served', () => {
  const tags = lane(300n)
  setBack(tags, 120n)
  setBack(tags, 200n)
  expect(tags.finish).toBe(120n)
})
