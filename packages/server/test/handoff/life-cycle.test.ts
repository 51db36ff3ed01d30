import { expect, test } from 'vitest'
import { type StoredState, transitions } from '../../src/handoff/rules/life-cycle.ts'

test('done ends only in a rerun, cancelled in nothing', () => {
  const leaving = (state: StoredState) =>
    Object.entries(transitions).flatMap(([event, { from }]) =>
      (from as readonly StoredState[]).includes(state) ? [event] : [],
    )
  expect(leaving('done')).toEqual(['rerun'])
  expect(leaving('cancelled')).toEqual([])
})
