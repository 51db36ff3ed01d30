import { describe, expect, test } from 'vitest'
import { type Driver, some } from './driver.ts'
import { type StoreHarness, storesOf } from './harness.ts'

/** Reads until the last page. */
async function follow(store: Driver, from: string | null, limit = 100) {
  const tasks: string[] = []
  const parked: string[] = []
  let after = from
  while (true) {
    const page = await store.store.changes({ after, limit })
    expect(page.missed).toBe(false)
    tasks.push(...page.tasks.map(({ facts }) => facts.taskId))
    parked.push(...page.parked.map(({ taskId, level, index }) => `${taskId}-${level}-${index}`))
    if (page.next === after) return { tasks, parked, position: page.next }
    after = page.next
  }
}

export function changesTopic(harness: StoreHarness): void {
  describe('changes, for event streams', () => {
    const open = storesOf(harness)

    test('each page has what changed since the previous one', async () => {
      const store = await open()
      await store.callBack('before', some(0, 1))
      const { position } = await follow(store, null)
      await store.callBack('a', some(0, 1))
      await store.callBack('b', some(0, 1))
      const second = await follow(store, position)
      expect(second.tasks.toSorted()).toEqual(['a', 'b'])
      expect((await follow(store, second.position)).tasks).toEqual([])
      await store.settle((await store.pullOne()).leaseId)
      expect((await follow(store, second.position)).tasks).toContain('before')
    })

    test('a parked partition is reported with its reason', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { position } = await follow(store, null)
      const { leaseId } = await store.pullOne()
      await store.settle(leaseId, { outcome: 'failed', final: true, reason: 'no such table' })
      const page = await store.store.changes({ after: position, limit: 100 })
      expect(page.parked).toEqual([
        { taskId: 'a', level: 0, index: 0, spelling: null, attempts: 1, reason: 'no such table' },
      ])
    })

    test('changes that do not fit into a page are on the next pages, and none is lost', async () => {
      const store = await open()
      const { position } = await follow(store, null)
      const names = Array.from({ length: 25 }, (_, number) => `t${number}`)
      for (const name of names) await store.callBack(name, some(0, 1))
      expect(new Set((await follow(store, position, 4)).tasks)).toEqual(new Set(names))
    })

    test('each of more tasks than fit into a page is reported once, however often it changes meanwhile', async () => {
      const store = await open()
      const names = Array.from({ length: 12 }, (_, number) => `t${number}`)
      for (const name of names) await store.callBack(name, some(0, 20))
      let { position } = await follow(store, null)
      const told = new Set<string>()
      for (let round = 0; round < 20; round += 1) {
        for (const _ of names) await store.settle((await store.pullOne()).leaseId)
        if (round >= 3) continue
        const page = await store.store.changes({ after: position, limit: 4 })
        for (const { facts } of page.tasks) told.add(facts.taskId)
        position = page.next
      }
      expect(told).toEqual(new Set(names))
      expect((await follow(store, position, 1000)).tasks.toSorted()).toEqual(names.toSorted())
    })

    test('a position of an earlier process, or none at all, is answered as missed', async () => {
      const store = await open()
      const page = await store.store.changes({ after: 'nonsense', limit: 10 })
      expect(page.missed).toBe(true)
      await store.callBack('a', some(0, 1))
      expect((await follow(store, page.next)).tasks).toEqual(['a'])
    })
  })
}
