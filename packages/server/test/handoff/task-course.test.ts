import { describe, expect, test } from 'vitest'
import { emptyTally, type Tally } from '../../src/handoff/tally.ts'
import { taskState } from '../../src/handoff/task-course.ts'

describe('the state of a task', () => {
  const cases: [
    string,
    { counts: Partial<Tally> } & Partial<Record<'paused' | 'cancelled' | 'rerunning', boolean>>,
    string,
  ][] = [
    ['something to do', { counts: { ready: 1, done: 9 } }, 'open'],
    ['only leases left', { counts: { leased: 1 } }, 'open'],
    ['parked and more', { counts: { parked: 3, delayed: 1 } }, 'open'],
    ['only parked left', { counts: { parked: 3, done: 1 } }, 'stalled'],
    ['everything done', { counts: { done: 4 } }, 'done'],
    ['paused', { paused: true, counts: { held: 4 } }, 'paused'],
    ['paused with only parked left', { paused: true, counts: { parked: 1 } }, 'paused'],
    ['paused, but done', { paused: true, counts: { done: 1 } }, 'done'],
    ['done so far, but more of it is to run again', { rerunning: true, counts: { done: 4 } }, 'open'],
    ['parked so far, but more is to run again', { rerunning: true, counts: { parked: 1, done: 4 } }, 'open'],
    [
      'paused while it is made to run again',
      { paused: true, rerunning: true, counts: { done: 4 } },
      'paused',
    ],
    ['cancelled, whatever is left', { cancelled: true, counts: { leased: 1 } }, 'cancelled'],
    ['cancelled and paused', { cancelled: true, paused: true, counts: { held: 1 } }, 'cancelled'],
  ]
  test.each(cases)('%s', (_name, { counts, ...flags }, expected) => {
    const facts = { paused: false, cancelled: false, rerunning: false, ...flags }
    expect(taskState({ ...facts, partitions: { ...emptyTally(), ...counts } })).toBe(expected)
  })
})
