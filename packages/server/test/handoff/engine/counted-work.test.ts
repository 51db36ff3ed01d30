import type { Session } from 'node:inspector/promises'
import { expect, test, vi } from 'vitest'
import type { Disk } from '../../../src/handoff/disk.ts'
import type { BatchedPull } from '../../../src/handoff/store.ts'
import { batchedCallBack, type Driver, one, some } from '../../store/conformance/driver.ts'
import { drivenEngine } from '../../store/driven-store.ts'
import { MemoryDatabase } from '../../support/memory-database.ts'

// V8 counts the blocks that run: function calls and iterations of loops. It must begin before the engine is
// compiled. So the work of a pull is counted, whatever the machine does meanwhile.
const { session } = await vi.hoisted(async () => {
  const inspector = await import('node:inspector/promises')
  const session: Session = new inspector.Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  return { session }
})

const ENGINE = '/src/handoff/engine/'

/** The number of blocks of the engine that ran since the last call. */
async function blocksRun(): Promise<number> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  let blocks = 0
  for (const { url, functions } of result) {
    if (!url.includes(ENGINE)) continue
    for (const { ranges } of functions) for (const { count } of ranges) blocks += count
  }
  return blocks
}

const READS = [
  'tasksNamed',
  'tasksById',
  'lanesById',
  'lanesOf',
  'lanesFrom',
  'partitionsById',
  'rows',
] as const

async function openCounted() {
  const counted = { reads: 0 }
  const disk = new MemoryDatabase().disk()
  const counting: Disk = {
    ...disk,
    waiting(queries) {
      counted.reads += 1
      return disk.waiting(queries)
    },
  }
  for (const name of READS) {
    const read = disk[name] as (...given: unknown[]) => unknown
    Object.assign(counting, {
      [name](...given: unknown[]) {
        counted.reads += 1
        return read(...given)
      },
    })
  }
  const driver = await drivenEngine(counting)

  /** The work of each of these pulls, which get this many partitions, and of settling these. */
  const workOf = async (pulls: readonly Partial<BatchedPull>[], { expected = 1, settled = false } = {}) => {
    // Flushes all rows.
    await driver.store.task('')
    await blocksRun()
    counted.reads = 0
    for (const pull of pulls) {
      const { partitions } = await driver.pull(pull)
      expect(partitions).toHaveLength(expected)
      if (settled) for (const { lease } of partitions) await driver.settle(lease?.id ?? '')
    }
    return { blocks: (await blocksRun()) / pulls.length, reads: counted.reads / pulls.length }
  }
  return { driver, workOf }
}

const listOf = <Item>(length: number, item: (at: number) => Item): Item[] =>
  Array.from({ length }, (_, at) => item(at))

/** Calls back this many partitions of each task. */
async function callBackTasks(driver: Driver, tasks: number, each: number, tableOf: (at: number) => string) {
  const callBacks = listOf(tasks, (at) =>
    batchedCallBack(`t${at}`, some(1, each, { computeTableName: tableOf(at) })),
  )
  await driver.batch({ callBacks })
}

const CASES = {
  'different filters of 50 tables each': async (scale: number) => {
    const [tables, filters] = [100 * scale, 10 * scale]
    const { driver, workOf } = await openCounted()
    await callBackTasks(driver, 2 * tables, 4, (at) => `table${at % tables}`)
    const pulls = listOf(filters, (filter) => ({
      tables: listOf(50, (at) => `table${(filter * 10 + at) % tables}`),
    }))
    await workOf(pulls)
    return workOf(pulls)
  },
  'filters that name one hot table, in rotation': async (scale: number) => {
    const { driver, workOf } = await openCounted()
    const filters = 50 * scale
    await callBackTasks(driver, 5, 2 * filters, () => 'hot')
    const pulls = listOf(filters, (at) => ({ tables: ['hot', `other${at}`] }))
    await workOf(pulls)
    return workOf(pulls)
  },
  'new filters that name one hot table of many tasks': async (scale: number) => {
    const { driver, workOf } = await openCounted()
    await callBackTasks(driver, 100 * scale, 2, () => 'hot')
    await workOf([{ tables: ['hot'] }])
    return workOf(listOf(20, (at) => ({ tables: ['hot', `other${at}`] })))
  },
  'a filter of a hot table that reaches its limit with each pull': async (scale: number) => {
    const { driver, workOf } = await openCounted()
    await callBackTasks(driver, 100 * scale, 2, () => 'hot')
    await driver.store.setTable({ table: 'hot', maxLeases: 1 })
    const pulls = listOf(20, () => ({ tables: ['hot'] }))
    await workOf(pulls.slice(0, 1), { settled: true })
    return workOf(pulls, { settled: true })
  },
  'a filter of a table of many tasks with other tables in their lanes': async (scale: number) => {
    const { driver, workOf } = await openCounted()
    const callBacks = listOf(50 * scale, (at) =>
      batchedCallBack(`t${at}`, [
        one(1, 0, { computeTableName: `own${at}` }),
        one(1, 1, { computeTableName: 'hot' }),
      ]),
    )
    await driver.batch({ callBacks })
    return workOf(listOf(20, (at) => ({ tables: ['hot', `own${at}`] })))
  },
  'pulls that name unknown tables': async (scale: number) => {
    const { driver, workOf } = await openCounted()
    await driver.callBack(
      'wide',
      listOf(250 * scale, (level) => one(level, 0)),
    )
    return workOf(
      listOf(50 * scale, (at) => ({ tables: [`unknown${at}`] })),
      { expected: 0 },
    )
  },
  'a filter of 50 of the tables of a lane': async (scale: number) => {
    const tables = 100 * scale
    const { driver, workOf } = await openCounted()
    await driver.callBack(
      'wide',
      listOf(2 * tables, (index) => one(1, index, { computeTableName: `table${index % tables}` })),
    )
    const named = listOf(50, (at) => `table${at * scale}`)
    return workOf(listOf(20, () => ({ tables: named })))
  },
  'a filter of the table of the last of many lanes with several': async (scale: number) => {
    const levels = 100 * scale
    const { driver, workOf } = await openCounted()
    await driver.callBack(
      'wide',
      listOf(levels, (level) => [
        one(level, 0, { computeTableName: 'a' }),
        one(level, 1, { computeTableName: 'b' }),
      ]).flat(),
    )
    await driver.callBack(
      'wide',
      listOf(30, (index) => one(levels, index, { computeTableName: index % 2 ? 'c' : 'd' })),
    )
    const pulls = listOf(10, () => ({ tables: ['c'] }))
    await workOf(pulls.slice(0, 1))
    return workOf(pulls)
  },
  'plain pulls': async (scale: number) => {
    const { driver, workOf } = await openCounted()
    await callBackTasks(driver, 100 * scale, 4, (at) => `table${at}`)
    return workOf(listOf(100 * scale, () => ({})))
  },
}

for (const [name, workOf] of Object.entries(CASES))
  test(`the work of a pull does not grow with the number of lanes or filters: ${name}`, async () => {
    const [few, many] = [await workOf(1), await workOf(4)]
    // Heaps of four times as many are two steps deeper.
    expect(many.blocks).toBeLessThan(1.5 * few.blocks)
    expect(many.reads).toBeLessThanOrEqual(Math.max(1, few.reads))
  })
