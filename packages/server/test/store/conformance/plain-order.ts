import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { advance, drain, type LevelTime } from '../../../src/handoff/rules/fair-order.ts'
import { nameOf } from './driver.ts'
import { type StoreHarness, storesOf } from './harness.ts'

interface PlainLane {
  readonly level: number
  readonly waiting: { readonly name: string; readonly recordCount: number }[]
  tag: bigint
}

/** The fair order without a heap, read-ahead or a disk: every lane is checked for every partition. */
class PlainOrder {
  readonly #levels = new Map<number, LevelTime>()
  /** In the order of their first call-back: the older task wins a tie. */
  readonly #lanes = new Map<string, PlainLane>()

  callBack(taskId: string, level: number, firstIndex: number, counts: readonly number[]): void {
    const time = this.#timeOf(level)
    const lane = this.#lanes.get(`${taskId}-${level}`) ?? { level, waiting: [], tag: 0n }
    this.#lanes.set(`${taskId}-${level}`, lane)
    const others = [...this.#lanes.values()].filter((one) => one.level === level && one.waiting.length > 0)
    if (others.length === 0) drain(time)
    for (const [at, recordCount] of counts.entries())
      lane.waiting.push({ name: `${taskId}-${level}-${firstIndex + at}`, recordCount })
  }

  pull(count: number): string[] {
    const names: string[] = []
    while (names.length < count) {
      let first: PlainLane | undefined
      for (const lane of this.#lanes.values())
        if (lane.waiting.length > 0 && goesBefore(lane, first)) first = lane
      const next = first?.waiting.shift()
      if (first === undefined || next === undefined) break
      first.tag = advance(this.#timeOf(first.level), first.tag, next.recordCount)
      names.push(next.name)
    }
    return names
  }

  #timeOf(level: number): LevelTime {
    const time = this.#levels.get(level) ?? { virtual: 0n, maxFinishTag: 0n }
    this.#levels.set(level, time)
    return time
  }
}

const goesBefore = (lane: PlainLane, first: PlainLane | undefined): boolean =>
  first === undefined || lane.level < first.level || (lane.level === first.level && lane.tag < first.tag)

const arrayOf = (maxLength: number) =>
  fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 1, maxLength, size: 'max' })
const callBack = fc.record({
  kind: fc.constant('call back' as const),
  task: fc.integer({ min: 0, max: 5 }),
  level: fc.integer({ min: 0, max: 2 }),
  counts: fc.oneof(arrayOf(5), arrayOf(200)),
})
/** Occasionally all partitions: only a drained level starts over. */
const pull = fc.record({
  kind: fc.constant('pull' as const),
  count: fc.oneof(
    { weight: 2, arbitrary: fc.integer({ min: 1, max: 150 }) },
    { weight: 1, arbitrary: fc.constant(1000) },
  ),
})
const step = fc.oneof(
  { weight: 3, arbitrary: callBack },
  { weight: 4, arbitrary: pull },
  { weight: 1, arbitrary: fc.constantFrom({ kind: 'crash' as const }, { kind: 'look' as const }) },
)

/** Level 1 has drained when the store stops, so task 0 gets no turn before task 2. */
const DRAINED_BEFORE_A_CRASH = [
  { kind: 'call back' as const, task: 2, level: 1, counts: [0] },
  { kind: 'pull' as const, count: 1000 },
  { kind: 'crash' as const },
  { kind: 'call back' as const, task: 0, level: 1, counts: [0] },
  { kind: 'call back' as const, task: 2, level: 1, counts: [0] },
  { kind: 'pull' as const, count: 1 },
]

/** The level has drained, so that task 1 does not catch up on what task 0 was handed before. */
const DRAINED = [
  { kind: 'call back' as const, task: 0, level: 0, counts: [100, 100] },
  { kind: 'pull' as const, count: 1000 },
  { kind: 'call back' as const, task: 1, level: 0, counts: [100, 100, 100] },
  { kind: 'call back' as const, task: 0, level: 0, counts: [100, 100, 100] },
  { kind: 'pull' as const, count: 4 },
]

/** A property test, so not among the topics that every store runs. */
export function followsPlainOrder(harness: StoreHarness, numRuns: number): void {
  describe('the order of the hand-off', () => {
    const open = storesOf(harness)

    test('is that of the plain rule, however it is stored, read ahead and deferred', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 25, size: 'max' }), async (steps) => {
          const store = await open()
          const plain = new PlainOrder()
          const nextIndex = new Map<string, number>()
          const pulled = async (count: number) => (await store.pull({ batch: count })).partitions.map(nameOf)
          for (const order of steps) {
            if (order.kind === 'crash') await store.reopen()
            else if (order.kind === 'look')
              await store.store.tasks({ state: null, parked: false, before: null, limit: 10, search: null })
            else if (order.kind === 'pull') expect(await pulled(order.count)).toEqual(plain.pull(order.count))
            else {
              const taskId = `task${order.task}`
              const lane = `${taskId}-${order.level}`
              const first = nextIndex.get(lane) ?? 0
              nextIndex.set(lane, first + order.counts.length)
              plain.callBack(taskId, order.level, first, order.counts)
              const partitions = order.counts.map((recordCount, at) => ({
                level: order.level,
                index: first + at,
                recordCount,
                computeTableName: 's.t',
                spelling: null,
              }))
              await store.callBack(taskId, partitions)
            }
          }
          expect(await pulled(1000)).toEqual(plain.pull(1000))
        }),
        { numRuns, examples: [[DRAINED_BEFORE_A_CRASH], [DRAINED]] },
      )
    })
  })
}
