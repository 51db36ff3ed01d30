import { expect, test } from 'vitest'
import { some } from '../../store/conformance/driver.ts'
import { TestClock } from '../../store/conformance/harness.ts'
import { drivenEngine } from '../../store/driven-store.ts'
import { MemoryDatabase } from '../../support/memory-database.ts'

async function node(database: MemoryDatabase, clock: TestClock) {
  let appends = 0
  const disk = database.disk()
  const counting: typeof disk = {
    ...disk,
    append(entry) {
      appends += 1
      return disk.append(entry)
    },
  }
  return { driver: await drivenEngine(counting, { clock }), appends: () => appends }
}

test('a node that was deposed answers that nothing is ready for five seconds at most', async () => {
  const database = new MemoryDatabase()
  const clock = new TestClock()
  const { driver: first } = await node(database, clock)
  const { driver: second } = await node(database, clock)
  await second.callBack('a', some(0, 1))

  clock.advance(5000)
  expect((await first.pull()).partitions).toEqual([])
  clock.advance(1)
  await expect(first.pull()).rejects.toThrow()
})

test('empty pulls append one entry in five seconds', async () => {
  const clock = new TestClock()
  const { driver, appends } = await node(new MemoryDatabase(), clock)
  for (let millis = 0; millis <= 30_000; millis += 100) {
    await driver.pull()
    clock.advance(100)
  }
  expect(appends()).toBe(5)
})
