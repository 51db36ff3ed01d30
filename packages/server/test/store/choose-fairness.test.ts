import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Driver, one } from './conformance/driver.ts'
import { TestClock, testPolicy } from './conformance/harness.ts'
import { memoryHarness } from './memory-harness.ts'

const tables = ['r.a', 'r.b', 'r.c'] as const

interface TaskPlan {
  /** The table of each partition, and its records. */
  readonly partitions: readonly { readonly table: (typeof tables)[number]; readonly records: number }[]
  /** The number of pulls after which it is called back. */
  readonly from: number
}

const plan: fc.Arbitrary<TaskPlan> = fc.record({
  partitions: fc.array(
    fc.record({ table: fc.constantFrom(...tables), records: fc.integer({ min: 0, max: 500 }) }),
    { minLength: 1, maxLength: 60 },
  ),
  from: fc.constantFrom(0, 0, 5, 20),
})

/** The filter of a pull; each filter has its own order. */
const filters = [null, ...tables]

/** The lead of tasks over each other in what one order handed out, since both began to have work in it. */
class Leads {
  readonly #leads = new Map<string, number>()

  served(order: string, task: string, cost: number, others: readonly string[]): void {
    for (const other of others) {
      this.#leads.set(`${order} ${task} ${other}`, this.of(order, task, other) + cost)
      this.#leads.set(`${order} ${other} ${task}`, Math.max(0, this.of(order, other, task) - cost))
    }
  }

  of(order: string, task: string, other: string): number {
    return this.#leads.get(`${order} ${task} ${other}`) ?? 0
  }

  /** It had nothing for this order for a while. */
  forget(order: string, task: string): void {
    for (const name of this.#leads.keys())
      if (name.startsWith(`${order} `) && name.split(' ').slice(1).includes(task)) this.#leads.delete(name)
  }
}

async function largestExcess(plans: readonly TaskPlan[], choices: readonly number[]): Promise<number> {
  const clock = new TestClock()
  const under = await memoryHarness().open({ policy: testPolicy, clock })
  const store = new Driver(under, clock)
  const waiting = new Map<string, TaskPlan['partitions'][number][]>()
  const largest = new Map<string, number>()
  const leads = new Leads()
  let excess = Number.NEGATIVE_INFINITY
  const hasFor = (task: string, filter: string | null) =>
    waiting.get(task)?.some(({ table }) => filter === null || table === filter) ?? false
  for (const [turn, choice] of choices.entries()) {
    for (const [at, { partitions, from }] of plans.entries())
      if (from === turn) {
        const task = `t${at}`
        const called = partitions.map(({ table, records }, index) =>
          one(0, index, { computeTableName: table, recordCount: records }),
        )
        await store.callBack(task, called)
        waiting.set(task, [...partitions])
        largest.set(task, Math.max(1, ...partitions.map(({ records }) => records)))
      }
    const filter = filters[choice] ?? null
    const order = filter ?? 'all'
    const [handedOut] = (await store.pull(filter === null ? {} : { tables: [filter] })).partitions
    const rivals = [...waiting.keys()].filter((task) => hasFor(task, filter))
    expect(handedOut === undefined).toBe(rivals.length === 0)
    if (handedOut === undefined) continue
    const { taskId, computeTableName, recordCount } = handedOut
    const others = rivals.filter((task) => task !== taskId)
    leads.served(order, taskId, Math.max(1, recordCount), others)
    const bound = (other: string) => (largest.get(taskId) ?? 0) + (largest.get(other) ?? 0)
    for (const other of others) excess = Math.max(excess, leads.of(order, taskId, other) - bound(other))
    const left = waiting.get(taskId) ?? []
    // The first partition of its table in its lane, or, without a filter by table, the first of all.
    expect(left.find(({ table }) => filter === null || table === filter)?.table).toBe(computeTableName)
    left.splice(
      left.findIndex(({ table }) => table === computeTableName),
      1,
    )
    for (const each of filters) if (!hasFor(taskId, each)) leads.forget(each ?? 'all', taskId)
  }
  expect(await store.store.audit()).toEqual([])
  await under.dispose()
  return excess
}

describe('pulls with different filters', () => {
  test('each order shares by records among the tasks with work in it, whatever other pulls take', async () => {
    const pulls = fc.array(fc.nat(filters.length - 1), { minLength: 60, maxLength: 200 })
    await fc.assert(
      fc.asyncProperty(fc.array(plan, { minLength: 2, maxLength: 5 }), pulls, async (plans, choices) => {
        expect(await largestExcess(plans, choices)).toBeLessThanOrEqual(0)
      }),
      { numRuns: 60 },
    )
  })

  test('where several tables are named, none gets ahead by more than its largest partition and the other', async () => {
    const size = fc.integer({ min: 1, max: 500 })
    await fc.assert(
      fc.asyncProperty(fc.array(size, { minLength: 20, maxLength: 60 }), size, async (sizes, other) => {
        const clock = new TestClock()
        const under = await memoryHarness().open({ policy: testPolicy, clock })
        const store = new Driver(under, clock)
        const called = (table: string, records: readonly number[]) =>
          records.map((recordCount, index) => one(0, index, { computeTableName: table, recordCount }))
        await store.callBack('a', called('r.a', sizes))
        await store.callBack('b', called('r.b', sizes.toReversed()))
        await store.callBack('c', called('r.c', Array(60).fill(other)))
        let lead = 0
        for (let at = 0; at < 15; at += 1) {
          const { taskId, recordCount } = await store.pullOne({ tables: ['r.a', 'r.b'] })
          lead += taskId === 'a' ? recordCount : -recordCount
          expect(Math.abs(lead)).toBeLessThanOrEqual(2 * Math.max(...sizes))
        }
        await under.dispose()
      }),
      { numRuns: 30 },
    )
  })
})
