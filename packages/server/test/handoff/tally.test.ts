import { expect, test } from 'vitest'
import { addCapped, totalOf, unfinishedOf } from '../../src/handoff/rules/task.ts'

test('a tally has a total and a number of unfinished partitions', () => {
  const counts = { ready: 1, held: 2, leased: 4, delayed: 8, parked: 16, done: 32, cancelled: 64 }
  expect(totalOf(counts)).toBe(127)
  expect(unfinishedOf(counts)).toBe(31)
})

test('sums of reported records stop at the largest exact number', () => {
  expect(addCapped(2, 3)).toBe(5)
  expect(addCapped(Number.MAX_SAFE_INTEGER - 1, 5)).toBe(Number.MAX_SAFE_INTEGER)
})
