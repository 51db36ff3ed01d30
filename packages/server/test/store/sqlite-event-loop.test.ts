import { setImmediate as nextIteration } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type Tally, totalOf } from '../../src/handoff/rules/task.ts'
import { type Driver, leaseOf, one, settlement, some } from './conformance/driver.ts'
import { storesOf } from './conformance/harness.ts'
import { sqliteHarness } from './sqlite-harness.ts'

/** Written in steps, because a single write would block the event loop for too long. */
const LARGE = 30_000

async function turnsUntil(work: Promise<unknown>): Promise<number> {
  let isThrough = false
  const end = () => {
    isThrough = true
  }
  work.then(end, end)
  let turns = 0
  for (; !isThrough; turns += 1) await nextIteration()
  await work
  return turns
}

const open = storesOf(sqliteHarness)

test('sequential requests let the event loop run in between', async () => {
  const { store } = await open()
  let turned = false
  setImmediate(() => {
    turned = true
  })
  await store.task('unknown')
  expect(turned).toBe(true)
})

describe('while a large call-back is written', () => {
  test('the event loop keeps running', async () => {
    const driver = await open()
    expect(await turnsUntil(driver.callBack('large', some(0, LARGE)))).toBeGreaterThan(5)
  })

  test('pulls and views continue, and see nothing of it until it is stored', async () => {
    const driver = await open()
    await driver.callBack('small', some(1, 3))
    let isStored = false
    const writing = driver.callBack('large', some(0, LARGE)).finally(() => {
      isStored = true
    })
    expect(await driver.pull()).toMatchObject({ partitions: [{ taskId: 'small', index: 0 }] })
    expect(await driver.store.task('large')).toBeNull()
    expect(isStored).toBe(false)
    const another = driver.callBack('large', [one(0, LARGE)])
    expect(await writing).toMatchObject({ accepted: LARGE })
    expect(await another).toMatchObject({ accepted: 1 })
    expect(totalOf((await driver.task('large')).facts.partitions)).toBe(LARGE + 1)
    expect(await driver.pull()).toMatchObject({ partitions: [{ taskId: 'large', index: 0 }] })
    expect(await driver.recount()).toEqual([])
  })

  test('a refused one stores nothing, and the store continues', async () => {
    const driver = await open()
    await driver.callBack('large', [one(0, LARGE - 1, { recordCount: 7 })])
    const refused = driver.callBack('large', some(0, LARGE))
    const after = driver.callBack('small', some(0, 3))
    expect(await refused).toMatchObject({ kind: 'conflict', total: 1 })
    expect(await after).toMatchObject({ accepted: 3 })
    expect((await driver.task('large')).facts.partitions).toMatchObject({ ready: 1, held: 0 })
    expect(await driver.recount()).toEqual([])
  })

  test('many levels with a few partitions each are written in steps as well', async () => {
    const driver = await open()
    const levels = Array.from({ length: 9000 }, (_, number) => one(Math.floor(number / 3), number))
    expect(await turnsUntil(driver.callBack('levels', levels))).toBeGreaterThan(5)
    expect(await driver.recount()).toEqual([])
  })
})

describe('while as many leases as one request may name', () => {
  const MANY = 10_000

  /** All partitions of a task, leased. */
  async function leased(driver: Driver) {
    await driver.callBack('many', some(0, MANY))
    const handed = await driver.pullAll(1000)
    expect(handed.length).toBe(MANY)
    return handed.map(({ lease }) => leaseOf(lease?.id ?? ''))
  }

  const settleAll = (reported: Parameters<typeof settlement>[0]) => async (driver: Driver) => {
    const settlements = (await leased(driver)).map((lease) => ({ lease, reported: settlement(reported) }))
    return () => driver.batch({ settles: [{ instance: 'worker', settlements }] })
  }
  const all = Array.from({ length: MANY }, (_, index) => ({ level: 0, index }))

  test.each<[string, (driver: Driver) => Promise<() => Promise<unknown>>, Partial<Tally>]>([
    ['are settled as done', settleAll({ outcome: 'done' }), { done: MANY }],
    ['are settled as failed', settleAll({ outcome: 'failed', reason: 'no' }), { delayed: MANY }],
    ['are settled as failed for good', settleAll({ outcome: 'failed', final: true }), { parked: MANY }],
    ['are released', settleAll({ outcome: 'released' }), { ready: MANY }],
    [
      'are renewed',
      async (driver) => {
        const leases = await leased(driver)
        return () => driver.batch({ renews: [{ leases }] })
      },
      { leased: MANY },
    ],
    [
      'are run again by name',
      async (driver) => {
        await (await settleAll({ outcome: 'done' })(driver))()
        return () => driver.retry('many', { partitions: all, done: true })
      },
      { done: 0 },
    ],
  ])('%s, the event loop keeps running', async (_, prepare, states) => {
    const driver = await open()
    const work = await prepare(driver)
    expect(await turnsUntil(work())).toBeGreaterThan(5)
    expect((await driver.task('many')).facts.partitions).toMatchObject(states)
  })

  test('are settled, no view sees a part of it, and later requests are served after it', async () => {
    const driver = await open()
    const settling = (await settleAll({ outcome: 'done', records: 100 })(driver))()
    const seen = driver.store.task('many')
    const pulled = driver.pull()
    expect((await settling).settles).toEqual([Array.from({ length: MANY }, () => null)])
    expect((await seen)?.facts).toMatchObject({ partitions: { done: MANY }, reportedRecords: 100 * MANY })
    expect(await pulled).toMatchObject({ partitions: [] })
  })

  test('are settled, the last ones count with their state at that time', async () => {
    const driver = await open()
    const leases = await leased(driver)
    const reported = settlement({ outcome: 'done' })
    const settlements = [...leases, ...leases.slice(0, 1)].map((lease, at) => ({
      lease,
      reported: at < MANY ? reported : settlement({ outcome: 'failed' }),
    }))
    const { settles } = await driver.batch({ settles: [{ instance: null, settlements }] })
    expect(settles[0]?.at(-1)).toBe('lease_settled')
    await driver.reopen()
    expect((await driver.task('many')).facts.partitions).toMatchObject({ done: MANY })
  })
})
