import { describe, expect, test } from 'vitest'
import {
  addCapped,
  emptyTally,
  holdsBarrier,
  isLaneOpen,
  type Tally,
  taskState,
  totalOf,
  unfinishedOf,
} from '../../src/handoff/task-record.ts'

const tally = (counts: Partial<Tally> = {}): Tally => ({ ...emptyTally(), ...counts })

describe('the state of a task', () => {
  const cases: [string, { paused?: boolean; cancelled?: boolean; counts: Partial<Tally> }, string][] = [
    ['something to do', { counts: { ready: 1, done: 9 } }, 'open'],
    ['only leases left', { counts: { leased: 1 } }, 'open'],
    ['parked and more', { counts: { parked: 3, delayed: 1 } }, 'open'],
    ['only parked left', { counts: { parked: 3, done: 1 } }, 'stalled'],
    ['everything done', { counts: { done: 4 } }, 'done'],
    ['paused', { paused: true, counts: { held: 4 } }, 'paused'],
    ['paused with only parked left', { paused: true, counts: { parked: 1 } }, 'paused'],
    ['paused, but done', { paused: true, counts: { done: 1 } }, 'done'],
    ['cancelled, whatever is left', { cancelled: true, counts: { leased: 1 } }, 'cancelled'],
    ['cancelled and paused', { cancelled: true, paused: true, counts: { held: 1 } }, 'cancelled'],
  ]
  test.each(cases)('%s', (_name, { paused = false, cancelled = false, counts }, expected) => {
    expect(taskState({ paused, cancelled, partitions: tally(counts) })).toBe(expected)
  })
})

describe('whether pulls may take from a lane', () => {
  const free = { paused: false, cancelled: false, levelBarrier: false, openLevel: null }

  test('not while its task is paused or cancelled', () => {
    expect(isLaneOpen(free, 3)).toBe(true)
    expect(isLaneOpen({ ...free, paused: true }, 3)).toBe(false)
    expect(isLaneOpen({ ...free, cancelled: true }, 3)).toBe(false)
  })

  test('behind a barrier only up to the lowest unfinished level', () => {
    const barred = { ...free, levelBarrier: true, openLevel: 2 }
    expect([0, 1, 2, 3].map((level) => isLaneOpen(barred, level))).toEqual([true, true, true, false])
    expect(isLaneOpen({ ...barred, openLevel: null }, 0)).toBe(false)
  })
})

describe('what keeps a barrier closed', () => {
  const holds = (counts: Partial<Tally>, parkedSkipped = false) =>
    holdsBarrier({ partitions: tally(counts), parkedSkipped })

  test('anything unfinished, parked included; done and cancelled do not', () => {
    for (const state of ['ready', 'held', 'leased', 'delayed', 'parked'] as const)
      expect(holds({ [state]: 1, done: 5 })).toBe(true)
    expect(holds({ done: 5, cancelled: 5 })).toBe(false)
  })

  test('parked partitions that an operator let pass do not, others beside them do', () => {
    expect(holds({ parked: 2 }, true)).toBe(false)
    expect(holds({ parked: 2, leased: 1 }, true)).toBe(true)
  })
})

test('sums of tallies', () => {
  const counts = tally({ ready: 1, held: 2, leased: 4, delayed: 8, parked: 16, done: 32, cancelled: 64 })
  expect(totalOf(counts)).toBe(127)
  expect(unfinishedOf(counts)).toBe(31)
})

test('sums of what clients report stop where numbers stop being exact', () => {
  expect(addCapped(2, 3)).toBe(5)
  expect(addCapped(Number.MAX_SAFE_INTEGER - 1, 5)).toBe(Number.MAX_SAFE_INTEGER)
})
