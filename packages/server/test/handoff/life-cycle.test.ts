import { describe, expect, test } from 'vitest'
import {
  ImpossibleTransition,
  next,
  type PartitionEvent,
  partitionEvents,
  type StoredState,
  transitions,
} from '../../src/handoff/rules/life-cycle.ts'

/**
 * Every transition in the design's diagram and in the sentences below it; transitions that are not listed are
 * impossible.
 */
const arrows: readonly [StoredState, PartitionEvent, StoredState][] = [
  // pull
  ['ready', 'lease', 'leased'],
  ['ready', 'deliver', 'done'],
  // settle: done, in time or late
  ['leased', 'finish', 'done'],
  ['ready', 'finish', 'done'],
  ['delayed', 'finish', 'done'],
  ['parked', 'finish', 'done'],
  // settle: released, or an undone pull
  ['leased', 'return', 'ready'],
  // failed or expired, attempts left
  ['leased', 'postpone', 'delayed'],
  ['delayed', 'wake', 'ready'],
  // no attempt left, or failed as final: in time, or late
  ['leased', 'park', 'parked'],
  ['ready', 'park', 'parked'],
  ['delayed', 'park', 'parked'],
  ['parked', 'park', 'parked'],
  // renew, also of an expired lease
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

describe('the states of a partition', () => {
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
