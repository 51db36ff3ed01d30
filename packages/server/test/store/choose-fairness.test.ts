import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FilterOrder } from '../../src/handoff/engine/state/filter-order.ts'
import { WaitingPartitions } from '../../src/handoff/engine/waiting-partitions.ts'
import { Driver, one } from './conformance/driver.ts'
import { TestClock, testPolicy } from './conformance/harness.ts'
import { memoryHarness } from './memory-harness.ts'

const tables = ['r.a', 'r.b', 'r.c'] as const

/** The same mixes each time: a bound that is too tight would fail for one of them, and not by chance. */
const SEED = 20_260_301

interface TaskPlan {
  /** The table of each partition, and how many records it has. */
  readonly partitions: readonly { readonly table: Table; readonly records: number }[]
  /** After how many pulls it is called back. */
  readonly from: number
  readonly weight: number
}

type Table = (typeof tables)[number]

const plan: fc.Arbitrary<TaskPlan> = fc.record({
  partitions: fc.array(
    fc.record({ table: fc.constantFrom(...tables), records: fc.integer({ min: 0, max: 500 }) }),
    { minLength: 1, maxLength: 60 },
  ),
  from: fc.constantFrom(0, 0, 5, 20),
  weight: fc.constantFrom(1, 1, 0.2, 5),
})

interface Filter {
  readonly tables: readonly Table[] | null
  readonly tasks: readonly string[] | null
}

/** What pulls name. Those with different filters are mixed in one run. */
const filters: readonly Filter[] = [
  { tables: null, tasks: null },
  ...tables.map((table) => ({ tables: [table], tasks: null })),
  { tables: ['r.a', 'r.b'], tasks: null },
  { tables: ['r.c', 'r.b'], tasks: null },
  { tables: null, tasks: ['t0', 't1'] },
  { tables: null, tasks: ['t1', 't2', 't3'] },
]

interface Waiting {
  readonly task: string
  readonly table: Table
  /** Its records, divided by the weight of its task. */
  readonly cost: number
}

/** The tasks that share a kind of pull. What a pull hands out counts only within its group. */
interface Group {
  readonly name: string
  /** The task of a partition; null if it is outside of the group. */
  memberOf(partition: Waiting): string | null
}

/** Each filter has an order of its own. */
const groupOf = (filter: Filter): Group => ({
  name: JSON.stringify([filter.tables?.toSorted() ?? null, filter.tasks]),
  memberOf: (partition) => (isFor(filter, partition) ? partition.task : null),
})

const isFor = ({ tables: named, tasks }: Filter, { task, table }: Waiting): boolean =>
  (named?.includes(table) ?? true) && (tasks?.includes(task) ?? true)

const plansOf = fc.array(plan, { minLength: 2, maxLength: 5 })
const pullsOf = fc.array(fc.nat(filters.length - 1), { minLength: 60, maxLength: 250 })

/** By how much each member of a group was handed more than each other one, since both have had work. */
class Leads {
  readonly #leads = new Map<string, number>()

  served(group: string, member: string, cost: number, others: readonly string[]): void {
    for (const other of others) {
      this.#leads.set(`${group} ${member} ${other}`, this.of(group, member, other) + cost)
      this.#leads.set(`${group} ${other} ${member}`, Math.max(0, this.of(group, other, member) - cost))
    }
  }

  of(group: string, member: string, other: string): number {
    return this.#leads.get(`${group} ${member} ${other}`) ?? 0
  }

  /** Forgets the pairs of which one member has no work. */
  keep(group: string, members: ReadonlySet<string>): void {
    for (const name of this.#leads.keys())
      if (name.startsWith(`${group} `)) {
        const pair = name.slice(group.length + 1).split(' ')
        if (!pair.every((member) => members.has(member))) this.#leads.delete(name)
      }
  }
}

/** By how much the largest lead is beyond its bound: the sum of the largest partitions of the two. */
async function largestExcess(plans: readonly TaskPlan[], choices: readonly number[]): Promise<number> {
  const clock = new TestClock()
  const under = await memoryHarness().open({ policy: testPolicy, clock })
  const store = new Driver(under, clock)
  const waiting: Waiting[] = []
  const largest = new Map<string, number>()
  const groups = new Map<string, Group>()
  const leads = new Leads()
  let excess = Number.NEGATIVE_INFINITY
  for (const [turn, choice] of choices.entries()) {
    for (const [at, { partitions, from, weight }] of plans.entries())
      if (from === turn) {
        const task = `t${at}`
        await store.control({ verb: 'settings', taskId: task, settings: { weight } })
        const called = partitions.map(({ table, records }, index) =>
          one(0, index, { computeTableName: table, recordCount: records }),
        )
        await store.callBack(task, called)
        for (const { table, records } of partitions) {
          const cost = Math.max(1, Math.round(Math.max(1, records) / weight))
          waiting.push({ task, table, cost })
          largest.set(task, Math.max(cost, largest.get(task) ?? 0))
        }
      }
    const filter = filters[choice] as Filter
    const [handedOut] = (await store.pull(filter)).partitions
    expect(handedOut === undefined).toBe(!waiting.some((partition) => isFor(filter, partition)))
    if (handedOut === undefined) continue
    // In its lane, the first of the tables that were named.
    const { taskId, computeTableName } = handedOut
    const due = waiting.find((partition) => partition.task === taskId && isFor(filter, partition))
    if (due?.table !== computeTableName) throw new Error(`${taskId} was not handed out in order`)
    const group = groupOf(filter)
    groups.set(group.name, group)
    const others = [...membersOf(group, waiting)].filter((other) => other !== taskId)
    leads.served(group.name, taskId, due.cost, others)
    const bound = (other: string) => (largest.get(taskId) ?? 0) + (largest.get(other) ?? 0)
    for (const other of others) excess = Math.max(excess, leads.of(group.name, taskId, other) - bound(other))
    waiting.splice(waiting.indexOf(due), 1)
    for (const known of groups.values()) leads.keep(known.name, membersOf(known, waiting))
  }
  expect(await store.recount()).toEqual([])
  await under.dispose()
  return excess
}

const membersOf = (group: Group, waiting: readonly Waiting[]): Set<string> =>
  new Set(waiting.map((partition) => group.memberOf(partition)).filter((member) => member !== null))

/** Orders that are unfair, which the check must find. Each returns a function that restores the fair one. */
const unfair: readonly { readonly what: string; readonly make: () => () => void }[] = [
  {
    what: 'filters that are not charged',
    make: () => {
      const { charge } = FilterOrder.prototype
      FilterOrder.prototype.charge = () => undefined
      return () => {
        FilterOrder.prototype.charge = charge
      }
    },
  },
  {
    what: 'filters without weights',
    make: () => {
      const { charge } = FilterOrder.prototype
      FilterOrder.prototype.charge = function (lane, recordCount) {
        charge.call(this, { ...lane, parentTask: { ...lane.parentTask, settings: null } }, recordCount)
      }
      return () => {
        FilterOrder.prototype.charge = charge
      }
    },
  },
  {
    what: 'filters that are charged to the order of all lanes',
    make: () => {
      const { serve } = WaitingPartitions.prototype
      WaitingPartitions.prototype.serve = function (partition) {
        serve.call(this, partition, null)
      }
      return () => {
        WaitingPartitions.prototype.serve = serve
      }
    },
  },
]

describe('pulls with different filters', () => {
  test('each share by records and weight among tasks with work for them, whatever the others take', async () => {
    await fc.assert(
      fc.asyncProperty(plansOf, pullsOf, async (plans, choices) => {
        expect(await largestExcess(plans, choices)).toBeLessThanOrEqual(0)
      }),
      { numRuns: 80, seed: SEED },
    )
  })

  test.each(unfair)('the same check finds $what', async ({ make }) => {
    const putBack = make()
    try {
      let excess = Number.NEGATIVE_INFINITY
      for (const [plans, choices] of fc.sample(fc.tuple(plansOf, pullsOf), { numRuns: 20, seed: SEED }))
        excess = Math.max(excess, await largestExcess(plans, choices))
      expect(excess).toBeGreaterThan(0)
    } finally {
      putBack()
    }
  })

  test('that name several tables let no task get ahead by more than the largest partitions of the two', async () => {
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
      { numRuns: 30, seed: SEED },
    )
  })
})
