import { describe, expect, test } from 'vitest'
import {
  emptyTally,
  holdsBarrier,
  holdsBarrierForGood,
  isLaneOpen,
  type Tally,
} from '../../src/handoff/rules/task.ts'

describe('a lane is open to pulls', () => {
  const free = { paused: false, cancelled: false, levelBarrier: false, openLevel: null }

  test('not while its task is paused or cancelled', () => {
    expect(isLaneOpen(free, 3)).toBe(true)
    expect(isLaneOpen({ ...free, paused: true }, 3)).toBe(false)
    expect(isLaneOpen({ ...free, cancelled: true }, 3)).toBe(false)
  })

  test('only up to the lowest unfinished level, behind a barrier', () => {
    const barred = { ...free, levelBarrier: true, openLevel: 2 }
    expect([0, 1, 2, 3].map((level) => isLaneOpen(barred, level))).toEqual([true, true, true, false])
    expect(isLaneOpen({ ...barred, openLevel: null }, 0)).toBe(false)
  })
})

describe('a barrier is kept closed', () => {
  const holds = (counts: Partial<Tally>, parkedSkipped = false) =>
    holdsBarrier({ partitions: { ...emptyTally(), ...counts }, parkedSkipped })

  test('by anything unfinished, parked included; not by done and cancelled partitions', () => {
    for (const state of ['ready', 'held', 'leased', 'delayed', 'parked'] as const)
      expect(holds({ [state]: 1, done: 5 })).toBe(true)
    expect(holds({ done: 5, cancelled: 5 })).toBe(false)
  })

  test('not by parked partitions that an operator skipped, but by others of the level', () => {
    expect(holds({ parked: 2 }, true)).toBe(false)
    expect(holds({ parked: 2, leased: 1 }, true)).toBe(true)
  })

  test('until an operator acts, if only parked partitions are left that were not skipped', () => {
    const forGood = (counts: Partial<Tally>, parkedSkipped = false) =>
      holdsBarrierForGood({ partitions: { ...emptyTally(), ...counts }, parkedSkipped })
    expect(forGood({ parked: 2, done: 5, cancelled: 1 })).toBe(true)
    expect(forGood({ parked: 2 }, true)).toBe(false)
    expect(forGood({ done: 5 })).toBe(false)
    for (const state of ['ready', 'held', 'leased', 'delayed'] as const)
      expect(forGood({ [state]: 1, parked: 2 })).toBe(false)
  })
})
