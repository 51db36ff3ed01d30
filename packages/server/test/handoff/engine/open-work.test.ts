import { expect, test } from 'vitest'
import { OpenWorkMeter } from '../../../src/handoff/open-work-meter.ts'
import { one, some } from '../../store/conformance/driver.ts'
import { testPolicy } from '../../store/conformance/harness.ts'
import { drivenEngine } from '../../store/driven-store.ts'
import { MemoryDatabase } from '../../support/memory-database.ts'

test('an array that gives a task too many lanes is refused, small or large', async () => {
  const driver = await drivenEngine(new MemoryDatabase().disk(), {
    limits: { lanesOfTask: 3, largeCallBack: 10 },
  })
  await driver.callBack('a', [one(0, 0), one(1, 0)])
  const refused = { kind: 'too_many_levels', most: 3 }
  expect(await driver.callBack('a', [one(2, 0), one(3, 0)])).toEqual(refused)
  expect(await driver.callBack('a', [...some(2, 10), one(3, 0)])).toEqual(refused)
  expect(await driver.callBack('a', [one(0, 1), one(2, 0)])).toMatchObject({ accepted: 2 })
  expect(await driver.callBack('b', [one(3, 0)])).toMatchObject({ accepted: 1 })
})

test('a store with more open work than allowed opens, and finishes it', async () => {
  const database = new MemoryDatabase()
  const before = await drivenEngine(database.disk())
  await before.callBack('a', [one(0, 0), one(1, 0), one(2, 0)])
  await before.pull({ batch: 2 })
  const driver = await drivenEngine(database.disk(), { limits: { lanes: 1, leases: 1 } })
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
