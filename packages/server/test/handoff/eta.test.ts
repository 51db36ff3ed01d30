import { describe, expect, test } from 'vitest'
import { emptyTally } from '../../src/handoff/rules/tally.ts'
import type { TaskFacts } from '../../src/handoff/rules/task-facts.ts'
import * as eta from '../../src/handoff/shown/eta.ts'
import type { PaceSecond, TaskRow } from '../../src/handoff/shown/task-record.ts'

const NOW = 10_000_000_000
const SECOND = NOW / 1000

/** A task of 100 partitions of 10 records, 20 of them done. */
const facts = (changes: Partial<TaskFacts> = {}): TaskFacts => ({
  taskId: 'a',
  paused: false,
  cancelled: false,
  sealed: false,
  rerunning: false,
  expectedPartitions: null,
  levelBarrier: false,
  openLevel: null,
  generation: 1,
  firstCallBackAt: NOW - 3_600_000,
  lastCallBackAt: NOW - 3_600_000,
  finishedAt: null,
  purgedAt: null,
  partitions: { ...emptyTally(), ready: 80, done: 20 },
  records: { ...emptyTally(), ready: 800, done: 200 },
  delivered: 0,
  attemptsWasted: 0,
  reportedDeclared: 0,
  reportedRecords: 0,
  mismatched: 0,
  owners: [],
  ...changes,
})

const finished = (secondsAgo: number, partitions: number, records = partitions * 10): PaceSecond => ({
  second: SECOND - secondsAgo,
  partitions,
  records,
})

const paceOf = (of: TaskFacts, pace: readonly PaceSecond[], openLane: TaskRow['openLane'] = null) =>
  eta.paceOf({ facts: of, openLane, pace }, NOW)

describe('the pace', () => {
  test('is taken over a minute when the last twenty settles are younger', () => {
    const pace = [finished(1, 30), finished(20, 30), finished(200, 500)]
    expect(paceOf(facts(), pace)).toEqual({ recordsPerSecond: 10, etaSeconds: 80 })
  })

  test('reaches back as far as the last twenty settles when they are older', () => {
    const pace = [finished(1, 5), finished(100, 5), finished(200, 10), finished(300, 1000)]
    expect(paceOf(facts(), pace)).toEqual({ recordsPerSecond: 1, etaSeconds: 800 })
  })

  test('of a young task is taken over the life it has had', () => {
    const young = facts({ firstCallBackAt: NOW - 10_000 })
    expect(paceOf(young, [finished(1, 20)])).toEqual({ recordsPerSecond: 20, etaSeconds: 40 })
  })

  test('counts declared records, so large partitions weigh more', () => {
    const pace = [finished(2, 5, 600)]
    expect(paceOf(facts(), pace)).toEqual({ recordsPerSecond: 10, etaSeconds: 80 })
  })
})

describe('the time left', () => {
  test('is unknown below five settles', () => {
    expect(paceOf(facts(), [finished(1, 4)]).etaSeconds).toBeNull()
    expect(paceOf(facts(), [finished(1, 5)]).etaSeconds).not.toBeNull()
  })

  test('is counted in partitions where all counts are zero', () => {
    const empty = facts({ records: emptyTally() })
    expect(paceOf(empty, [finished(1, 60, 0)])).toEqual({ recordsPerSecond: 0, etaSeconds: 80 })
  })

  test('leaves out what was cancelled and what is done', () => {
    const partly = facts({ records: { ...emptyTally(), ready: 300, cancelled: 500, done: 200 } })
    expect(paceOf(partly, [finished(1, 60)]).etaSeconds).toBe(30)
  })

  test('is unknown when only empty partitions were finished of a task that has records', () => {
    expect(paceOf(facts(), [finished(1, 10, 0)]).etaSeconds).toBeNull()
  })

  const nothing = { recordsPerSecond: null, etaSeconds: null }
  test('is unknown while paused, stalled, done, cancelled, or before anything was finished', () => {
    const pace = [finished(1, 60)]
    expect(paceOf(facts({ paused: true }), pace)).toEqual(nothing)
    expect(paceOf(facts({ cancelled: true }), pace)).toEqual(nothing)
    expect(paceOf(facts({ partitions: { ...emptyTally(), parked: 3, done: 9 } }), pace)).toEqual(nothing)
    expect(paceOf(facts({ partitions: { ...emptyTally(), done: 9 } }), pace)).toEqual(nothing)
    const partitions = { ...emptyTally(), parked: 1, held: 2, done: 9 }
    const stuck = facts({ levelBarrier: true, openLevel: 0, partitions })
    const lane = { parkedSkipped: false, partitions: { ...emptyTally(), parked: 1 }, records: emptyTally() }
    expect(paceOf(stuck, pace, lane)).toEqual(nothing)
    expect(paceOf(facts(), [])).toEqual(nothing)
  })

  test('is unknown when nobody has worked on it for a minute; a running lease is work', () => {
    const pace = [finished(62, 60)]
    expect(paceOf(facts(), pace)).toEqual(nothing)
    const working = facts({ partitions: { ...emptyTally(), ready: 79, leased: 1, done: 20 } })
    expect(paceOf(working, pace).etaSeconds).not.toBeNull()
  })
})
