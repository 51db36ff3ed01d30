import { expect, test } from 'vitest'
import { openEngine } from '../../../src/handoff/engine/engine-store.ts'
import type { EngineLimits } from '../../../src/handoff/engine/runner.ts'
import { OpenWorkMeter } from '../../../src/handoff/open-work-meter.ts'
import { Driver, one, some } from '../../store/conformance/driver.ts'
import { TestClock, testPolicy } from '../../store/conformance/harness.ts'
import { MemoryDatabase } from '../../support/memory-database.ts'

async function openWith(database: MemoryDatabase, limits: Partial<EngineLimits>, openWork?: OpenWorkMeter) {
  const clock = new TestClock()
  const store = await openEngine({
    disk: database.disk(),
    policy: testPolicy,
    clock: clock.now,
    random: () => 0,
    secret: () => 'A'.repeat(16),
    limits,
    openWork,
  })
  return new Driver({ store, reopen: async () => {}, dispose: async () => {} }, clock)
}

test('an array that gives a task too many lanes is refused, small or large', async () => {
  const driver = await openWith(new MemoryDatabase(), { lanesOfTask: 3, largeCallBack: 10 })
  await driver.callBack('a', [one(0, 0), one(1, 0)])
  const refused = { kind: 'too_many_levels', most: 3 }
  expect(await driver.callBack('a', [one(2, 0), one(3, 0)])).toEqual(refused)
  expect(await driver.callBack('a', [...some(2, 10), one(3, 0)])).toEqual(refused)
  expect(await driver.callBack('a', [one(0, 1), one(2, 0)])).toMatchObject({ accepted: 2 })
  expect(await driver.callBack('b', [one(3, 0)])).toMatchObject({ accepted: 1 })
})

test('a store with more open work than allowed opens, and finishes it', async () => {
  const database = new MemoryDatabase()
  const before = await openWith(database, {})
  await before.callBack('a', [one(0, 0), one(1, 0), one(2, 0)])
  await before.pull({ batch: 2 })
  const driver = await openWith(database, { lanes: 1, leases: 1 })
  expect(await driver.callBack('b', [one(0, 0)])).toMatchObject({ kind: 'too_many_lanes' })
  expect((await driver.pull()).because?.code).toBe('too_many_leases')
  await driver.pass(testPolicy.leaseMillis + 1)
  expect((await driver.pull({ batch: 5 })).partitions).toHaveLength(1)
})

test('a warning is logged once at 80 % of a limit, and again after the use went down', () => {
  const warnings: unknown[] = []
  const note = (fields: unknown) => void warnings.push(fields)
  const silent = () => undefined
  const log = { warn: note, info: silent, error: silent, debug: silent }
  const meter = new OpenWorkMeter({ lanes: 10, leases: 100 }, log)
  meter.note(7, 0)
  expect(warnings).toEqual([])
  meter.note(8, 0)
  meter.note(9, 80)
  meter.note(7, 80)
  meter.note(8, 80)
  expect(warnings).toEqual([
    { lanes: 8, most: 10 },
    { leases: 80, most: 100 },
  ])
  meter.note(6, 0)
  meter.note(8, 0)
  expect(warnings).toHaveLength(3)
})
