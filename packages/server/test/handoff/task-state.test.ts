import { describe, expect, test } from 'vitest'
import { decidingLevel, emptyTally, isDone, type Tally, taskState } from '../../src/handoff/rules/task.ts'

const free = {
  paused: false,
  cancelled: false,
  rerunning: false,
  levelBarrier: false,
  openLevel: null as number | null,
}

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
    const facts = { ...free, ...flags, partitions: { ...emptyTally(), ...counts } }
    expect(taskState(facts, null)).toBe(expected)
    expect(isDone(facts)).toBe(expected === 'done')
    expect(decidingLevel(facts)).toBeNull()
  })
})

describe('the state of a task with a barrier, whose open level is 3', () => {
  const cases: [
    string,
    { counts: Partial<Tally>; open: Partial<Tally>; skipped?: boolean } & Partial<typeof free>,
    string,
  ][] = [
    ['parked there, and all else behind it', { open: { parked: 1 }, counts: { held: 2 } }, 'stalled'],
    ['the same, not all of it held yet', { open: { parked: 1 }, counts: { ready: 1, held: 1 } }, 'stalled'],
    [
      'parked there, and below where it was passed',
      { open: { parked: 1 }, counts: { held: 2, parked: 1 } },
      'stalled',
    ],
    ['more of it behind its window', { open: { parked: 1, held: 1 }, counts: { held: 2 } }, 'open'],
    ['more of it ready', { open: { parked: 1, ready: 1 }, counts: { held: 2 } }, 'open'],
    ['more of it leased', { open: { parked: 1, leased: 1 }, counts: { held: 2 } }, 'open'],
    ['more of it delayed', { open: { parked: 1, delayed: 1 }, counts: { held: 2 } }, 'open'],
    ['a lease that runs behind it', { open: { parked: 1 }, counts: { held: 2, leased: 1 } }, 'open'],
    ['a back-off behind it', { open: { parked: 1 }, counts: { held: 2, delayed: 1 } }, 'open'],
    ['parked below alone', { open: { held: 1 }, counts: { held: 2, parked: 1 } }, 'open'],
    ['called back there and not counted yet', { open: {}, counts: { held: 2, parked: 1 } }, 'open'],
    [
      'passed, and about to open the next',
      { skipped: true, open: { parked: 1 }, counts: { held: 2 } },
      'open',
    ],
    ['more is to run again', { rerunning: true, open: { parked: 1 }, counts: { held: 2 } }, 'open'],
    ['paused', { paused: true, open: { parked: 1 }, counts: { held: 2 } }, 'paused'],
    ['cancelled', { cancelled: true, open: { parked: 1 }, counts: { held: 2 } }, 'cancelled'],
    ['taken down', { levelBarrier: false, open: { parked: 1 }, counts: { held: 2 } }, 'open'],
  ]
  test.each(cases)('%s', (_name, { counts, open, skipped = false, ...flags }, expected) => {
    const lane = { partitions: { ...emptyTally(), ...open }, parkedSkipped: skipped }
    const partitions = { ...lane.partitions }
    for (const [state, count] of Object.entries(counts)) partitions[state as keyof Tally] += count
    const facts = { ...free, levelBarrier: true, openLevel: 3, ...flags, partitions }
    expect(taskState(facts, lane)).toBe(expected)
    // A store that loads the lane only when needed gets the same result.
    const level = decidingLevel(facts)
    expect([null, 3]).toContain(level)
    expect(taskState(facts, level === null ? null : lane)).toBe(expected)
  })
})
