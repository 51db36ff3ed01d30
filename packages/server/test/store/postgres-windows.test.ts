import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { WINDOW } from '../../src/store/postgres/windows/lanes.ts'
import { Driver, some } from './conformance/driver.ts'
import { TestClock, testPolicy } from './conformance/harness.ts'
import { pullLevels } from './conformance/lanes.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.dispose())

/** However long a lane is locked, its window has to be filled; the store looks for 40 ms before it gives up for the moment. */
const LONGER_THAN_LOOKED_FOR = 100

/** As the roller does for some milliseconds, and other nodes do that fill windows of their own. */
async function lockLanes(url: string): Promise<() => Promise<void>> {
  const other = new pg.Client({ connectionString: url })
  await other.connect()
  await other.query('BEGIN')
  await other.query('SELECT FROM baton.lane ORDER BY id FOR NO KEY UPDATE')
  return async () => {
    await other.query('COMMIT')
    await other.end()
  }
}

async function openStore() {
  const clock = new TestClock()
  const { name, url } = await server.borrowDatabase()
  const store = await openPostgresStore({ url, policy: testPolicy, clock: clock.now })
  const driver = new Driver({ store, reopen: async () => {}, dispose: async () => {} }, clock)
  const close = async () => {
    expect(await store.audit()).toEqual([])
    await store.close()
    await server.giveBack(name)
  }
  return { driver, url, close }
}

test('a window whose lane is locked when its turn comes is filled all the same, and tasks go on side by side', async () => {
  const { driver, url, close } = await openStore()
  await driver.callBack('small', some(0, 5000, { recordCount: 10 }))
  await driver.callBack('large', some(0, 5000, { recordCount: 40 }))
  const given = { small: 0, large: 0 }
  for (let pulls = 0; pulls < 6; pulls += 1) {
    const letGo = await lockLanes(url)
    const pulling = driver.pull({ batch: 700 })
    await Promise.race([pulling, sleep(LONGER_THAN_LOOKED_FOR)])
    await letGo()
    for (const { taskId, recordCount } of (await pulling).partitions)
      given[taskId as 'small' | 'large'] += recordCount
    expect(Math.abs(given.small - given.large)).toBeLessThanOrEqual(50)
  }
  await close()
})

test('claims side by side never go past the end of a window that is about to be filled', async () => {
  const { driver, url, close } = await openStore()
  const [claims, batch] = [8, 400]
  await driver.callBack('a', [...some(0, claims * batch), ...some(1, batch)])
  const letGo = await lockLanes(url)
  const pulling = Promise.all(Array.from({ length: claims }, () => driver.pull({ batch })))
  await Promise.race([pulling, sleep(LONGER_THAN_LOOKED_FOR)])
  await letGo()
  const given = (await pulling).flatMap(({ partitions }) => partitions)
  expect(given.filter(({ level }) => level === 1)).toEqual([])
  expect(new Set(given.map(({ index }) => index)).size).toBe(claims * batch)
  await close()
})

test('pulls by transaction side by side do not go past it either', async () => {
  const { driver, url, close } = await openStore()
  await driver.callBack('a', [...some(0, 5000), ...some(1, 500)])
  const letGo = await lockLanes(url)
  const pulling = Promise.all(
    [1000, 50, 1000, 50, 1000].map((batch) =>
      driver.pull({ batch, records: batch === 50 ? 1_000_000 : null }),
    ),
  )
  await Promise.race([pulling, sleep(LONGER_THAN_LOOKED_FOR)])
  await letGo()
  expect((await pulling).flatMap(({ partitions }) => partitions).filter(({ level }) => level === 1)).toEqual(
    [],
  )
  await close()
})

test('what is handed out again takes no room in a window', async () => {
  const { driver, close } = await openStore()
  await driver.callBack('a', [...some(0, 5000), ...some(1, 500)])
  for (let given = 0; given < 1500; given += 500) await driver.pull({ batch: 500 })
  await driver.pass(testPolicy.leaseMillis)
  await driver.pass(testPolicy.backoffMaxMillis)
  for (let given = 0; given < 5000; given += 500) {
    const { partitions } = await driver.pull({ batch: 500 })
    expect(partitions.filter(({ level }) => level === 1)).toEqual([])
  }
  await close()
})

test('a call-back that nearly fitted a window leaves enough behind its tripwire', async () => {
  const { driver, close } = await openStore()
  await driver.callBack('a', some(0, WINDOW - 10))
  await driver.callBack('a', [...some(0, 310, {}, WINDOW - 10), ...some(1, 500)])
  const levels: number[] = []
  while (levels.length < WINDOW + 300)
    levels.push(...(await driver.pull({ batch: 100 })).partitions.map(({ level }) => level))
  expect(levels.filter((level) => level === 1)).toEqual([])
  await close()
})

test('what is retried behind a window that is full has a tripwire before it', async () => {
  const { driver, close } = await openStore()
  await driver.callBack('a', [...some(0, WINDOW), ...some(1, 500)])
  const { leaseId } = await driver.pullOne()
  await driver.settle(leaseId, { outcome: 'failed', final: true })
  await driver.callBack('a', some(0, 1, {}, WINDOW))
  await driver.retry('a')
  expect(await pullLevels(driver, WINDOW + 1)).toEqual([0])
  await close()
})
