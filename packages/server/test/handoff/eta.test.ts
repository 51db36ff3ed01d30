import { describe, expect, test } from 'vitest'
import { RecentPace } from '../../src/handoff/engine/state/recent-pace.ts'
import { countDuration, countOf, quantileOf } from '../../src/handoff/rules/durations.ts'
import { emptyTally, type TaskFacts } from '../../src/handoff/rules/task.ts'
import * as eta from '../../src/handoff/views/eta.ts'
import type { Seen, TaskRow } from '../../src/handoff/views/queries.ts'
import { type LeasedOrDelayed, overdueOf } from '../../src/handoff/views/time-left.ts'

const NOW = 10_000_000_000

/** A task of 100 partitions of 10 records, 20 of them done. */
const facts = (changes: Partial<TaskFacts> = {}): TaskFacts => ({
  taskId: 'a',
  paused: false,
  cancelled: false,
  sealed: false,
  reruns: [],
  expectedPartitions: null,
  levelBarrier: false,
  settings: null,
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

/** Finished within the last minute. */
const finished = (partitions: number, records = partitions * 10, changes: Partial<Seen> = {}): Seen => ({
  partitions,
  records,
  seconds: 60,
  idleMillis: 1000,
  ...changes,
})

const paceOf = (of: TaskFacts, pace: Seen | null, openLane: TaskRow['openLane'] = null) =>
  withoutReason(eta.paceOf({ facts: of, openLane, pace }, NOW))

const withoutReason = ({ recordsPerSecond, etaSeconds }: eta.Pace) => ({ recordsPerSecond, etaSeconds })

describe('the throughput', () => {
  const seen = (since: number, ...settles: [secondsAgo: number, partitions: number][]): Seen => {
    const pace = new RecentPace(NOW - since * 1000)
    for (const [secondsAgo, partitions] of settles)
      for (let left = partitions; left > 0; left -= 1) pace.add(NOW - secondsAgo * 1000, 10)
    return pace.seen(NOW)
  }

  test('is taken over the last half minute or longer', () => {
    const pace = seen(500, [200, 500], [50, 10], [20, 10], [10, 10])
    expect(pace).toEqual({ partitions: 30, records: 300, seconds: 50, idleMillis: 10_000 })
    expect(paceOf(facts(), pace)).toEqual({ recordsPerSecond: 6, etaSeconds: 800 / 6 })
  })

  test('reaches back as far as the last ten settles or more', () => {
    const pace = seen(300, [250, 5], [200, 5], [100, 5], [1, 4])
    expect(pace).toMatchObject({ partitions: 19, seconds: 300 })
  })

  test('is taken over a second at least, also if the clock was set back', () => {
    expect(seen(0, [0, 1])).toMatchObject({ seconds: 1 })
    expect(seen(-60, [-60, 1])).toMatchObject({ seconds: 1 })
  })

  test('counts declared records, so large partitions weigh more', () => {
    expect(paceOf(facts(), finished(5, 600))).toEqual({ recordsPerSecond: 10, etaSeconds: 80 })
  })
})

describe('the time left', () => {
  test('is unknown below five settles', () => {
    expect(paceOf(facts(), finished(4)).etaSeconds).toBeNull()
    expect(paceOf(facts(), finished(5)).etaSeconds).not.toBeNull()
  })

  test('is counted in partitions where all counts are zero', () => {
    const empty = facts({ records: emptyTally() })
    expect(paceOf(empty, finished(60, 0))).toEqual({ recordsPerSecond: 0, etaSeconds: 80 })
  })

  test('leaves out what was cancelled and what is done', () => {
    const partly = facts({ records: { ...emptyTally(), ready: 300, cancelled: 500, done: 200 } })
    expect(paceOf(partly, finished(60)).etaSeconds).toBe(30)
  })

  test('is unknown when only empty partitions were finished of a task that has records', () => {
    expect(paceOf(facts(), finished(10, 0)).etaSeconds).toBeNull()
  })

  const nothing = { recordsPerSecond: null, etaSeconds: null }
  test('is unknown while paused, stalled, done, cancelled, or before anything was finished', () => {
    const pace = finished(60)
    expect(paceOf(facts({ paused: true }), pace)).toEqual(nothing)
    expect(paceOf(facts({ cancelled: true }), pace)).toEqual(nothing)
    expect(paceOf(facts({ partitions: { ...emptyTally(), parked: 3, done: 9 } }), pace)).toEqual(nothing)
    expect(paceOf(facts({ partitions: { ...emptyTally(), done: 9 } }), pace)).toEqual(nothing)
    const partitions = { ...emptyTally(), parked: 1, held: 2, done: 9 }
    const stuck = facts({ levelBarrier: true, openLevel: 0, partitions })
    const lane = { parkedSkipped: false, partitions: { ...emptyTally(), parked: 1 }, records: emptyTally() }
    expect(paceOf(stuck, pace, lane)).toEqual(nothing)
    expect(paceOf(facts(), null)).toEqual(nothing)
  })

  test('is unknown after a minute without work; a valid lease is work', () => {
    const pace = finished(60, 600, { idleMillis: 61_000 })
    expect(paceOf(facts(), pace)).toEqual(nothing)
    const working = facts({ partitions: { ...emptyTally(), ready: 79, leased: 1, done: 20 } })
    expect(paceOf(working, pace).etaSeconds).not.toBeNull()
  })
})

describe('the time left, estimated with attempts', () => {
  const lease = (age: number, endsIn: number, changes: Partial<LeasedOrDelayed> = {}): LeasedOrDelayed => ({
    level: 0,
    index: 0,
    spelling: null,
    state: 'leased',
    holder: 'w',
    leasedAt: NOW - age,
    dueAt: NOW + endsIn,
    recordCount: 10,
    renewed: false,
    unheardShare: 0,
    progress: null,
    ...changes,
  })
  /** Twenty attempts of two seconds. */
  const durations: number[] = []
  for (let at = 0; at < 20; at += 1) countDuration(durations, 2000)
  const pace = finished(60)
  const left = (of: TaskFacts, underWay: readonly LeasedOrDelayed[], seen: Seen | null = pace) => {
    const { etaSeconds, etaWaitsFor } = eta.paceOf(
      { facts: of, openLane: null, pace: seen, timing: { durations, underWay, backoffMillis: 7500 } },
      NOW,
    )
    return [etaSeconds === null ? null : Math.round(etaSeconds), etaWaitsFor]
  }
  const nearlyDone = facts({
    partitions: { ...emptyTally(), leased: 1, done: 99 },
    records: { ...emptyTally(), leased: 10, done: 990 },
  })

  test('follows the throughput while much is waiting', () => {
    expect(left(facts(), [lease(1000, 299_000)])).toEqual([80, 'pace'])
  })

  test('is not too short while a dead worker holds the last partition for minutes', () => {
    expect(left(nearlyDone, [lease(60_000, 240_000)])).toEqual([249, 'lease'])
  })

  test('does not treat a worker that renews as dead', () => {
    expect(left(nearlyDone, [lease(60_000, 290_000, { renewed: true })])).toEqual([30, 'lease'])
  })

  test('counts the lease of a silent holder until its end, with the attempt after it, however few are known', () => {
    const few: number[] = []
    countDuration(few, 2000)
    const silent = lease(240_000, 60_000, { unheardShare: 0.8 })
    const estimated = (known: readonly number[], one: LeasedOrDelayed) =>
      eta.paceOf(
        {
          facts: nearlyDone,
          openLane: null,
          pace: null,
          timing: { durations: known, underWay: [one], backoffMillis: 7500 },
        },
        NOW,
      ).etaSeconds
    expect(Math.round(estimated(few, silent) ?? 0)).toBe(69)
    expect(Math.round(estimated(durations, { ...silent, renewed: true }) ?? 0)).toBe(69)
    // An attempt that took as long, of a worker that renewed, does not make it shorter.
    const withStraggler = [...durations]
    countDuration(withStraggler, 250_000)
    const unrenewed = lease(200_000, 100_000, { unheardShare: 0.67 })
    expect(Math.round(estimated(withStraggler, unrenewed) ?? 0)).toBe(109)
    expect(estimated(withStraggler, { ...unrenewed, unheardShare: 0.2, renewed: true })).toBeGreaterThan(50)
    // A dead worker is noticed before its holder is silent, with a single ended attempt, too.
    expect(estimated(few, lease(30_000, 270_000, { unheardShare: 0.1 }))).toBeGreaterThan(270)
  })

  test('waits for the end of a back-off, and for the attempt after it', () => {
    const delayed = facts({
      partitions: { ...emptyTally(), delayed: 1, done: 99 },
      records: { ...emptyTally(), delayed: 10, done: 990 },
    })
    expect(left(delayed, [lease(0, 120_000, { state: 'delayed' })])).toEqual([122, 'back-off'])
    expect(left(delayed, [lease(0, 120_000, { state: 'delayed' })], null)).toEqual([122, 'back-off'])
  })

  test('leaves out parked partitions, which wait for an operator', () => {
    const parked = facts({
      partitions: { ...emptyTally(), ready: 40, parked: 40, done: 20 },
      records: { ...emptyTally(), ready: 400, parked: 400, done: 200 },
    })
    expect(left(parked, [])).toEqual([40, 'pace'])
  })

  test('allows a large partition more time, by its records', () => {
    expect(left(nearlyDone, [lease(1000, 299_000, { recordCount: 100 })])).toEqual([16, 'lease'])
  })

  test('is estimated from running attempts before there is a throughput, and unknown without them', () => {
    const begun = facts({
      partitions: { ...emptyTally(), ready: 80, leased: 4, done: 16 },
      records: { ...emptyTally(), ready: 800, leased: 40, done: 160 },
    })
    const four = [0, 1, 2, 3].map((index) => lease(500, 299_000, { index }))
    expect(left(begun, four, null)).toEqual([46, 'pace'])
    expect(left(facts(), [], null)).toEqual([null, null])
  })

  test('reports partitions that take several times as long as others as overdue, the oldest first', () => {
    const underWay = [
      lease(1000, 1, { index: 1 }),
      lease(20_000, 1, { index: 2 }),
      lease(30_000, 1, { index: 3 }),
    ]
    const found = overdueOf(nearlyDone, { durations, underWay, backoffMillis: 0 }, NOW)
    expect(found.map(({ partition }) => partition.index)).toEqual([3, 2])
    expect(overdueOf(nearlyDone, { durations: [], underWay, backoffMillis: 0 }, NOW)).toEqual([])
  })
})

describe('durations', () => {
  test('quantiles are right within a fifth, however different the lengths', () => {
    const durations: number[] = []
    for (let millis = 1; millis <= 10_000; millis += 1) countDuration(durations, millis)
    expect(countOf(durations)).toBe(10_000)
    for (const share of [0.1, 0.5, 0.95]) {
      const found = (quantileOf(durations, share) ?? 0) / (10_000 * share)
      expect(found).toBeGreaterThan(0.8)
      expect(found).toBeLessThan(1.25)
    }
    expect(durations.length).toBeLessThan(60)
    expect(quantileOf([], 0.5)).toBeNull()
  })
})
