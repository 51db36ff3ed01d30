import { describe, expect, test } from 'vitest'
import { some } from './conformance/driver.ts'
import { storesOf } from './conformance/harness.ts'
import { sqliteHarness } from './sqlite-harness.ts'

describe('while more tasks change than fit into a page', () => {
  const open = storesOf(sqliteHarness)
  const names = Array.from({ length: 12 }, (_, number) => `t${number}`)

  async function openBusy() {
    const store = await open()
    for (const name of names) await store.callBack(name, some(0, 40))
    const { next } = await store.store.changes({ after: null, limit: 4 })
    /** One partition of each task, in turn. */
    const settleEach = async () => {
      for (const _ of names) await store.settle((await store.pullOne()).leaseId)
    }
    return { store, next, settleEach }
  }

  test('each is reported in time, also the one that changes all the time', async () => {
    const { store, next, settleEach } = await openBusy()
    const told = new Set<string>()
    let after = next
    for (let round = 0; round < 3; round += 1) {
      await settleEach()
      const page = await store.store.changes({ after, limit: 4 })
      for (const { facts } of page.tasks) told.add(facts.taskId)
      after = page.next
    }
    expect(told).toEqual(new Set(names))
  })

  test('nothing is missed, however fast they change: each task is in the log once', async () => {
    const { store, next, settleEach } = await openBusy()
    for (let round = 0; round < 20; round += 1) await settleEach()
    const page = await store.store.changes({ after: next, limit: 1000 })
    expect(page.missed).toBe(false)
    expect(page.tasks.map(({ facts }) => facts.taskId).toSorted()).toEqual(names.toSorted())
    expect(page.tasks.every(({ facts }) => facts.partitions.done === 20)).toBe(true)
  })
})
