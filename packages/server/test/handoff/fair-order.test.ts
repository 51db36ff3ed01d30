import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import type { Driver } from '../store/conformance/driver.ts'
import { storesOf } from '../store/conformance/harness.ts'
import { memoryHarness } from '../store/memory-harness.ts'
import { type FairnessEvent, unfairness } from './fairness.ts'
import {
  fairScheduler,
  firstComeFirstServed,
  play,
  type SchedulerStep,
  startAtTheHead,
} from './fairness-schedulers.ts'
import { FairnessSimulation, type SimulationStep } from './fairness-simulation.ts'

const task = fc.constantFrom('red', 'green', 'blue', 'grey')
const records = fc.oneof(fc.nat(20), fc.constantFrom(0, 1, 100, 100, 2_500, 40_000, 3_000_000_000))
const callBack = fc.record({
  kind: fc.constant('call-back'),
  task,
  recordCounts: fc.array(records, { minLength: 1, maxLength: 25, size: 'max' }),
})
const pull = fc.record({ kind: fc.constant('pull'), count: fc.integer({ min: 1, max: 12 }) })
const settle = fc.record({
  kind: fc.constant('settle'),
  pick: fc.nat(100),
  outcome: fc.constantFrom('done', 'failed', 'released'),
})
const control = fc.record({ kind: fc.constantFrom('pause', 'resume', 'resume'), task })

const schedules: fc.Arbitrary<SchedulerStep[]> = fc.array(fc.oneof(callBack, pull), {
  minLength: 10,
  maxLength: 60,
  size: 'max',
})
const mixes: fc.Arbitrary<SimulationStep[]> = fc.array(
  fc.oneof(
    { arbitrary: callBack, weight: 4 },
    { arbitrary: pull, weight: 6 },
    { arbitrary: settle, weight: 8 },
    { arbitrary: control, weight: 2 },
  ),
  { minLength: 20, maxLength: 120, size: 'max' },
)

describe('the checker', () => {
  const largest = new Map([
    ['a', 10],
    ['b', 20],
  ])
  const both: FairnessEvent[] = [
    { kind: 'work', task: 'a', has: true },
    { kind: 'work', task: 'b', has: true },
  ]
  const given = (name: string, cost: number): FairnessEvent => ({ kind: 'given', task: name, cost })

  test('allows the sum of the largest partitions, and no more, over any interval', () => {
    const turns = [given('a', 10), given('b', 20), given('a', 10), given('a', 10), given('a', 10)]
    expect(unfairness([...both, ...turns], largest)).toEqual([])
    expect(unfairness([...both, ...turns, given('a', 1)], largest)).toHaveLength(1)
  })

  test('judges only while both have work', () => {
    const alone = Array.from({ length: 9 }, () => given('a', 10))
    const leaves: FairnessEvent = { kind: 'work', task: 'b', has: false }
    expect(unfairness([...both, leaves, ...alone], largest)).toEqual([])
  })

  test('reports the naive rules, and not the fair one, on the same arrivals and pulls', () => {
    const runs = fc.sample(schedules, { numRuns: 300, seed: 20_260_301 })
    const unfairRuns = (rule: typeof fairScheduler) =>
      runs.filter((steps) => {
        const { events, largest: sizes } = play(rule(), steps)
        return unfairness(events, sizes).length > 0
      }).length
    expect(unfairRuns(fairScheduler)).toBe(0)
    expect(unfairRuns(firstComeFirstServed)).toBeGreaterThan(100)
    expect(unfairRuns(startAtTheHead)).toBeGreaterThan(30)
  })
})

describe('the fair rule by itself', () => {
  test('is fair over every interval of every mix', () => {
    fc.assert(
      fc.property(schedules, (steps) => {
        const { events, largest } = play(fairScheduler(), steps)
        expect(unfairness(events, largest)).toEqual([])
      }),
      { numRuns: 500 },
    )
  })
})

describe('the order of a store', () => {
  const open = storesOf(memoryHarness())
  let opened: Driver | undefined
  afterEach(() => {
    opened = undefined
  })

  /** One store for all runs of a property: a level with a history is a harder case than a new one. */
  const simulate = async (steps: readonly SimulationStep[], run: number) => {
    opened ??= await open({ maxAttempts: 1000 })
    const simulation = new FairnessSimulation(opened)
    for (const step of steps) await simulation.take(renamed(step, run))
    return simulation
  }

  test('is fair by records over every interval, through failures, releases and pauses', async () => {
    let run = 0
    await fc.assert(
      fc.asyncProperty(mixes, async (steps) => {
        run += 1
        const { events, largest } = await simulate(steps, run)
        for (const name of largest.keys()) await opened?.control({ verb: 'cancel', taskId: name })
        expect(unfairness(events, largest)).toEqual([])
      }),
      { numRuns: 100, endOnFailure: true },
    )
  }, 120_000)

  test('is fair on lanes of thousands, of which only a part is read ahead', async () => {
    const store = await open()
    const simulation = new FairnessSimulation(store)
    const sizes = (seed: number) => fc.sample(fc.integer({ min: 1, max: 60 }), { numRuns: 800, seed })
    for (const seed of [1, 2, 3]) {
      await simulation.take({ kind: 'call-back', task: 'small', recordCounts: sizes(seed) })
      await simulation.take({
        kind: 'call-back',
        task: 'large',
        recordCounts: sizes(-seed).map((n) => n * 9),
      })
    }
    for (const kind of ['pause', 'resume'] as const) {
      for (const count of [1000, 7, 300]) await simulation.take({ kind: 'pull', count })
      await simulation.take({ kind, task: 'large' })
    }
    for (const count of [1000, 1, 700]) await simulation.take({ kind: 'pull', count })
    expect(unfairness(simulation.events, simulation.largest)).toEqual([])
  })

  test('hands out a single task in the order of its call-backs', async () => {
    const store = await open({ maxAttempts: 1000 })
    const simulation = new FairnessSimulation(store)
    let calledBack = 0
    for (const steps of fc.sample(mixes, { numRuns: 10, seed: 7 })) {
      for (const step of steps) {
        if (step.kind === 'pause' || step.kind === 'resume') continue
        if (step.kind === 'call-back') calledBack += step.recordCounts.length
        await simulation.take(step.kind === 'call-back' ? { ...step, task: 'alone' } : step)
      }
    }
    await simulation.take({ kind: 'pull', count: 1000 })
    const inOrder = Array.from({ length: calledBack }, (_, index) => `alone-${index}`)
    expect(simulation.firstHandOuts).toEqual(inOrder.slice(0, simulation.firstHandOuts.length))
  })

  test('gives a task that always fails at most two shares', async () => {
    const store = await open({ maxAttempts: 1000 })
    const simulation = new FairnessSimulation(store)
    const recordCounts = Array.from({ length: 400 }, (_, index) => 10 + (index % 7) * 30)
    await simulation.take({ kind: 'call-back', task: 'failing', recordCounts })
    await simulation.take({ kind: 'call-back', task: 'honest', recordCounts })
    for (let pulls = 0; pulls < 150; pulls += 1) {
      await simulation.take({ kind: 'pull', count: 3 })
      for (const partition of simulation.leasedOf('failing')) await simulation.settle(partition, 'failed')
      for (const partition of simulation.leasedOf('honest')) await simulation.settle(partition, 'done')
    }
    const failing = simulation.given.get('failing') ?? 0
    const honest = simulation.given.get('honest') ?? 0
    const slack = 2 * 190
    expect(failing).toBeLessThanOrEqual(2 * (honest + slack))
    // At least one share, too: failing costs other tasks nothing, but is not punished either.
    expect(failing).toBeGreaterThanOrEqual(honest - slack)
  })

  test('gives many small arrays no more than one large array', async () => {
    const store = await open()
    const simulation = new FairnessSimulation(store)
    const size = 100
    await simulation.take({ kind: 'call-back', task: 'whole', recordCounts: Array(200).fill(size) })
    for (let array = 0; array < 100; array += 1) {
      await simulation.take({ kind: 'call-back', task: 'pieces', recordCounts: [size, size] })
      await simulation.take({ kind: 'pull', count: 2 })
    }
    const whole = simulation.given.get('whole') ?? 0
    const pieces = simulation.given.get('pieces') ?? 0
    expect(Math.abs(whole - pieces)).toBeLessThanOrEqual(2 * size)
  })
})

/** Separates the tasks of a run from those of earlier runs, which remain in the store as cancelled. */
function renamed(step: SimulationStep, run: number): SimulationStep {
  return 'task' in step ? { ...step, task: `${step.task}-${run}` } : step
}
