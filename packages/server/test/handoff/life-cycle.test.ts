import { describe, expect, test } from 'vitest'
import {
  ImpossibleTransition,
  next,
  type PartitionEvent,
  partitionEvents,
  type StoredState,
  transitions,
} from '../../src/handoff/rules/life-cycle.ts'

/** Every arrow of the design's drawing and of the sentences below it; whatever is not listed cannot happen. */
const arrows: readonly [StoredState, PartitionEvent, StoredState][] = [
  // pull
  ['ready', 'lease', 'leased'],
  ['ready', 'deliver', 'done'],
  // settle: done, in time or late
  ['leased', 'finish', 'done'],
  ['ready', 'finish', 'done'],
  ['delayed', 'finish', 'done'],
  ['parked', 'finish', 'done'],
  // settle: released, or a pull that was undone
  ['leased', 'return', 'ready'],
  // failed or expired, attempts left
  ['leased', 'postpone', 'delayed'],
  ['delayed', 'wake', 'ready'],
  // no attempt left, or failed for good: in time, or late
  ['leased', 'park', 'parked'],
  ['ready', 'park', 'parked'],
  ['delayed', 'park', 'parked'],
  ['parked', 'park', 'parked'],
  // renew, also of a lease that expired
  ['leased', 'renew', 'leased'],
  ['ready', 'renew', 'leased'],
  ['delayed', 'renew', 'leased'],
  ['parked', 'renew', 'leased'],
  // operator: waits again
  ['parked', 'retry', 'ready'],
  ['done', 'rerun', 'ready'],
  // operator: cancel, everything that is not done
  ['ready', 'cancel', 'cancelled'],
  ['leased', 'cancel', 'cancelled'],
  ['delayed', 'cancel', 'cancelled'],
  ['parked', 'cancel', 'cancelled'],
]

const arrow = (from: StoredState, event: PartitionEvent) =>
  arrows.find(([state, happening]) => state === from && happening === event)?.[2] ?? null

describe('the life of a partition', () => {
  for (const state of Object.keys(transitions) as StoredState[]) {
    for (const event of partitionEvents) {
      const to = arrow(state, event)
      test(`${state}, ${event}: ${to ?? 'cannot happen'}`, () => {
        expect(transitions[state][event]).toBe(to)
        if (to === null) expect(() => next(state, event)).toThrow(ImpossibleTransition)
        else expect(next(state, event)).toBe(to)
      })
    }
  }

  test('done ends only in a rerun, cancelled in nothing', () => {
    const leaving = (state: StoredState) =>
      partitionEvents.filter((event) => transitions[state][event] !== null)
    expect(leaving('done')).toEqual(['rerun'])
    expect(leaving('cancelled')).toEqual([])
  })
})
