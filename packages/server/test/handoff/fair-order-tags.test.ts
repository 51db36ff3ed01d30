import { expect, test } from 'vitest'
import { advance, cost, drain, type LevelTime } from '../../src/handoff/rules/fair-order.ts'

const level = (virtual = 0n, maxFinishTag = 0n): LevelTime => ({ virtual, maxFinishTag })

test('a partition costs its records, at least one and at most a thousand million', () => {
  expect(
    [0, 1, 25_000, 10 ** 9, 10 ** 9 + 1, Number.MAX_SAFE_INTEGER].map((records) => cost(records)),
  ).toEqual([1n, 1n, 25_000n, 1_000_000_000n, 1_000_000_000n, 1_000_000_000n])
})

test('handing out moves the time of the level to the start, and the largest finish on', () => {
  const time = level(100n, 150n)
  advance(time, 120n, 10)
  expect(time).toEqual(level(120n, 150n))
  advance(time, 140n, 30)
  expect(time).toEqual(level(140n, 170n))
})

test('a lane that is behind starts at the time of the level, which never goes back', () => {
  const time = level(100n, 150n)
  expect(advance(time, 20n, 5)).toBe(105n)
  expect(time).toEqual(level(100n, 150n))
})

test('the weight of a task divides the cost of its partitions', () => {
  expect([advance(level(), 0n, 100, 4), advance(level(), 0n, 1, 4), advance(level(), 0n, 100, 0.5)]).toEqual([
    25n,
    1n,
    200n,
  ])
})

test('a drained level continues from the largest finish', () => {
  const time = level(100n, 150n)
  drain(time)
  expect(time).toEqual(level(150n, 150n))
})

test('the time of a level stays exact beyond 2^53', () => {
  const start = 2n ** 60n + 1n
  const time = level(start, start)
  advance(time, start + 1n, 3)
  expect(time).toEqual(level(start + 1n, start + 4n))
})
