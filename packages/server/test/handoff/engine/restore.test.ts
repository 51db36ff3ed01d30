import assert from 'node:assert/strict'
import { afterEach, expect, test } from 'vitest'
import { openEngine } from '../../../src/handoff/engine/engine-store.ts'
import { FinishedWork } from '../../../src/handoff/engine/finished-work.ts'
import { InstanceChanges } from '../../../src/handoff/engine/instance-changes.ts'
import { Runner } from '../../../src/handoff/engine/runner.ts'
import type { Memory } from '../../../src/handoff/engine/state/memory.ts'
import {
  type Changing,
  hasWork,
  type Key,
  type Lane,
  laneTablesOf,
  type Partition,
  type Table,
  type Task,
  tableOf,
} from '../../../src/handoff/engine/state/memory-rows.ts'
import type { WaitingBuffer } from '../../../src/handoff/engine/state/waiting-buffer.ts'
import { Transaction } from '../../../src/handoff/engine/transaction.ts'
import { WaitingPartitions } from '../../../src/handoff/engine/waiting-partitions.ts'
import { mayServe } from '../../../src/handoff/rules/task.ts'
import { RandomLife, seeded } from '../../archive/random-states.ts'
import { Driver } from '../../store/conformance/driver.ts'
import { TestClock, testPolicy } from '../../store/conformance/harness.ts'
import { MemoryDatabase } from '../../support/memory-database.ts'
import { fuzzSeed } from '../../support/mutation.ts'
import { recountIn } from '../../support/recount.ts'

const STEPS = 400
const SEEDS = [1, fuzzSeed]

class Injected extends Error {}

/** Counts down at every point at which a transaction may fail, and throws when it reaches zero. */
let pointsLeft = Number.POSITIVE_INFINITY
function point(): void {
  pointsLeft -= 1
  if (pointsLeft === 0) throw new Injected('injected')
}

const undo: (() => void)[] = []
afterEach(() => {
  for (const restore of undo.splice(0)) restore()
})

/** Every call of these methods may fail before it has an effect, or after it. */
function failAt(prototype: object, names: readonly string[]): void {
  for (const name of names) {
    const original = Reflect.get(prototype, name) as (...args: unknown[]) => unknown
    Reflect.set(prototype, name, function (this: unknown, ...args: unknown[]) {
      point()
      const result = original.apply(this, args)
      point()
      return result
    })
    undo.push(() => Reflect.set(prototype, name, original))
  }
}

const changing = (prototype: object, except: readonly string[]): string[] =>
  Object.entries(Object.getOwnPropertyDescriptors(prototype))
    .filter(([name, { value }]) => typeof value === 'function' && !except.includes(name))
    .map(([name]) => name)

/** Runs each transaction once or twice: if it failed at a random point, memory must be as it was before. */
function failSometimes(random: () => number): { readonly failed: number } {
  const counted = { failed: 0 }
  const transact = Runner.prototype.transact
  Runner.prototype.transact = async function (this: Runner, work, needsEntry) {
    while (true) {
      const memory = await this.open()
      const before = copyOf(memory)
      try {
        return await transact.call<Runner, [typeof work, typeof needsEntry], ReturnType<typeof work>>(
          this,
          (tx) => {
            pointsLeft = random() < 0.5 ? 1 + Math.floor(random() ** 2 * 60) : Number.POSITIVE_INFINITY
            return work(tx)
          },
          needsEntry,
        )
      } catch (error) {
        if (!(error instanceof Injected)) throw error
        counted.failed += 1
        expect(await this.open()).toBe(memory)
        compare(before, memory)
      } finally {
        pointsLeft = Number.POSITIVE_INFINITY
      }
    }
  }
  undo.push(() => {
    Runner.prototype.transact = transact
  })
  return counted
}

test.each(SEEDS)('a transaction that fails at any point leaves memory as it was: seed %i', async (seed) => {
  failAt(Transaction.prototype, changing(Transaction.prototype, ['constructor', 'restore']))
  failAt(FinishedWork.prototype, changing(FinishedWork.prototype, ['constructor']))
  failAt(InstanceChanges.prototype, changing(InstanceChanges.prototype, ['constructor']))
  failAt(WaitingPartitions.prototype, changing(WaitingPartitions.prototype, ['constructor']))
  const random = seeded(seed)
  const counted = failSometimes(random)
  const clock = new TestClock()
  const database = new MemoryDatabase()
  const disk = database.disk()
  const reads = new Proxy(disk, {
    get: (real, name) => {
      const value = Reflect.get(real, name)
      if (typeof value !== 'function') return value
      if (name === 'append')
        return async (...args: unknown[]) => {
          pointsLeft = Number.POSITIVE_INFINITY
          return value.apply(real, args)
        }
      return async (...args: unknown[]) => {
        point()
        return value.apply(real, args)
      }
    },
  })
  let secrets = 0
  const store = await openEngine({
    disk: reads,
    policy: testPolicy,
    clock: clock.now,
    random: () => {
      point()
      return random()
    },
    secret: () => {
      point()
      secrets += 1
      return `${secrets}`.padStart(16, 'A')
    },
    // Small, so that rows are also flushed, read, and dropped.
    limits: { flushRows: 40, flushEntries: 10, partitions: 60, keys: 5, largeCallBack: 6, piece: 3 },
  })
  const driver = new Driver({ store, reopen: async () => {}, dispose: async () => {} }, clock)
  const life = new RandomLife(driver, seed)
  await life.live(STEPS / 2)
  await life.beTold()
  await life.live(STEPS / 2)
  expect(await recountIn(database)).toEqual([])
  expect(counted.failed).toBeGreaterThan(STEPS / 10)
})

type Rows<Id, Row> = ReadonlyMap<Id, { readonly row: Row; readonly fields: object }>

/** The rows of memory, without what only says where they stand. */
interface Copied {
  readonly tasks: Rows<number, Task>
  readonly lanes: Rows<number, Lane>
  readonly partitions: Rows<number, Partition>
  readonly keys: Rows<string, Key>
  readonly others: object
}

const hasEvents = ({ subscriptions }: Memory): boolean => subscriptions.size > 0

function fieldsOfTask(memory: Memory, task: Task): object {
  const { lanes, tables, lastEventState, lastEventGeneration, ...fields } = task
  const open = [...lanes.values()].filter(hasWork).map(({ id }) => id)
  const events = hasEvents(memory) ? { lastEventState, lastEventGeneration } : {}
  return structuredClone({ ...fields, ...events, open: open.toSorted() })
}

function fieldsOfLane(memory: Memory, lane: Lane): object {
  const { parentTask, time, buffers, queueEntry, heapIndex, pins, lastEventFinished, ...others } = lane
  const { firstTable, mixed, counted, ...fields } = others
  const ofTables = Array.from(
    laneTablesOf(lane),
    ({ parentLane: _, buffers: _buffers, entry: _entry, ...table }) => table,
  )
  return structuredClone({
    ...fields,
    ...(hasEvents(memory) ? { lastEventFinished } : {}),
    tables: ofTables.toSorted((a, b) => (a.table < b.table ? -1 : 1)),
  })
}

function fieldsOfPartition({
  parentLane: _,
  bufferCount: _buffers,
  heapIndex: _index,
  ...fields
}: Partition) {
  return structuredClone(fields)
}

function copyOf(memory: Memory): Copied {
  const { levels, instances, pausedInstances, subscriptions, nextIds } = memory
  const times = [...levels.values()].filter(({ virtual, maxFinishTag }) => virtual > 0n || maxFinishTag > 0n)
  return {
    tasks: copied(memory.tasks, (task) => fieldsOfTask(memory, task)),
    lanes: copied(memory.lanes, (lane) => fieldsOfLane(memory, lane)),
    partitions: copied(memory.partitions, fieldsOfPartition),
    keys: copied(memory.keys, (key) => ({ ...key })),
    others: structuredClone({
      times: times.toSorted((a, b) => a.level - b.level),
      instances: [...instances].toSorted(),
      pausedInstances,
      subscriptions,
      nextIds,
    }),
  }
}

const copied = <Id, Row>(rows: ReadonlyMap<Id, Row>, fieldsOf: (row: Row) => object): Rows<Id, Row> =>
  new Map([...rows].map(([id, row]) => [id, { row, fields: fieldsOf(row) }]))

function compare(before: Copied, memory: Memory): void {
  const after = copyOf(memory)
  compareRows('task', before.tasks, after.tasks, memory, ({ finishedAt }) => finishedAt === null)
  compareRows('lane', before.lanes, after.lanes, memory, hasWork)
  compareRows('partition', before.partitions, after.partitions, memory, ({ state }) => state === 'leased')
  compareRows('key', before.keys, after.keys, memory, () => false)
  assert.deepEqual(after.others, before.others)
  assert.equal(
    memory.furtherTables,
    [...memory.lanes.values()].reduce(
      (sum, { mixed }) => sum + (mixed === null ? 0 : mixed.tables.size - 1),
      0,
    ),
  )
  checkOrder(memory)
  checkLeases(memory)
  checkTables(memory)
  checkBuffers(memory)
}

/** Rows that were only read may have come, and rows that are not open work may have gone. */
function compareRows<Id, Row extends Changing>(
  kind: string,
  before: Rows<Id, Row>,
  after: Rows<Id, Row>,
  memory: Memory,
  isNeeded: (row: Row) => boolean,
): void {
  for (const [id, { row, fields }] of before) {
    const now = after.get(id)
    if (now === undefined)
      assert.deepEqual([kind, id, memory.isClean(row) && !isNeeded(row)], [kind, id, true])
    else assert.deepEqual([kind, now.fields], [kind, fields])
  }
  for (const [id, { row }] of after)
    if (!before.has(id)) assert.deepEqual([kind, id, row.changedIn], [kind, id, 0])
}

const byPlace = (a: Lane, b: Lane): number =>
  a.level - b.level || (a.tag === b.tag ? a.id - b.id : a.tag < b.tag ? -1 : 1)

/** Tables count what waits and what is leased. */
function checkTables(memory: Memory): void {
  const [waiting, leases] = [new Map<Table, number>(), new Map<Table, number>()]
  const add = (counts: Map<Table, number>, table: Table, count: number) =>
    counts.set(table, (counts.get(table) ?? 0) + count)
  for (const lane of memory.lanes.values()) {
    if (lane.parentTask.cancelled) continue
    if (lane.mixed === null) add(waiting, lane.firstTable, lane.partitions.ready)
    else for (const { entry, ready } of laneTablesOf(lane)) add(waiting, entry.table, ready)
  }
  for (const partition of memory.partitions.values())
    if (partition.state === 'leased') add(leases, tableOf(partition), 1)
  for (const table of memory.order.tables.page(null, 1000)) {
    assert.equal(table.waiting.partitions, waiting.get(table) ?? 0)
    assert.equal(table.leases, leases.get(table) ?? 0)
    assert(memory.order.tables.get(table.name ?? '') === table)
  }
}

/** The order has every lane in which something waits, and serves the first that may be served. */
function checkOrder(memory: Memory): void {
  const waiting = [...memory.lanes.values()].filter(
    ({ partitions, parentTask }) => partitions.ready > 0 && !parentTask.cancelled,
  )
  for (const lane of waiting) assert(lane.queueEntry?.lanes.items.includes(lane))
  for (const level of memory.levels.values())
    assert.equal(level.waitingLanes, waiting.filter(({ time }) => time === level).length)
  const front = memory.order.front()
  const lowest = waiting.filter((lane) => lane.queueEntry?.lane === lane)
  const served = lowest.filter(({ parentTask, level }) => mayServe(parentTask, level)).toSorted(byPlace)
  assert.equal(front?.id, served[0]?.id)
}

function checkLeases(memory: Memory): void {
  const leased = [...memory.partitions.values()].filter(({ state }) => state === 'leased')
  const ids = (partitions: readonly Partition[]) => partitions.map(({ id }) => id).toSorted((a, b) => a - b)
  assert.deepEqual(ids(memory.leases.ended(Number.POSITIVE_INFINITY, 1e9)), ids(leased))
  for (const [holder, held] of Map.groupBy(leased, (partition) => partition.holder))
    if (holder !== null) assert.deepEqual(ids(memory.leases.heldBy(holder, 1e9)), ids(held))
}

/** Buffers have what waits, in order, and a complete one has all of it. */
function checkBuffers(memory: Memory): void {
  const times = new Map<Partition, number>()
  const check = (buffer: WaitingBuffer<Partition>, isReturned: boolean, count: number) => {
    const { items, isComplete } = buffer
    for (const item of items) {
      times.set(item, (times.get(item) ?? 0) + 1)
      assert.deepEqual([item.state, item.dueAt !== null], ['ready', isReturned])
      assert.equal(memory.partitions.get(item.id), item)
    }
    const sorted = items.toSorted((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0) || a.id - b.id)
    assert.deepEqual(
      items.map(({ id }) => id),
      sorted.map(({ id }) => id),
    )
    if (isComplete) assert.equal(items.length, count)
  }
  for (const lane of memory.lanes.values()) {
    if (lane.parentTask.cancelled) continue
    check(lane.buffers.fresh, false, lane.partitions.ready - lane.returned)
    check(lane.buffers.returned, true, lane.returned)
    for (const { buffers, ready, returned } of laneTablesOf(lane)) {
      if (buffers === null) continue
      check(buffers.fresh, false, ready - returned)
      check(buffers.returned, true, returned)
    }
  }
  for (const partition of memory.partitions.values())
    if (!partition.parentLane.parentTask.cancelled)
      assert.deepEqual([partition.id, partition.bufferCount], [partition.id, times.get(partition) ?? 0])
}
