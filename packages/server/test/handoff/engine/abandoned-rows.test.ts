import { expect, test } from 'vitest'
import { aTask, byId, NOW, rows, write } from '../../disk/conformance/builders.ts'
import { drivenEngine } from '../../store/driven-store.ts'
import { MemoryDatabase } from '../../support/memory-database.ts'

test('staged rows are removed after a crash, however many tasks have reruns', async () => {
  const database = new MemoryDatabase()
  const disk = database.disk()
  const left = () => database.db.prepare('SELECT id FROM partition').all().length
  await disk.open()
  const reruns = [{ only: null, begunAt: NOW, level: 0, index: -1 }]
  const rerunning = Array.from({ length: 1000 }, (_, at) => aTask(at + 1, { reruns }))
  const staged = aTask(1001, { staging: { first: 1, last: 3 } })
  await write(disk, { tasks: byId(...rerunning, staged) })
  await disk.stage(rows(1, 1, 3))
  expect(left()).toBe(3)
  const { store } = await drivenEngine(disk)
  expect(left()).toBe(0)
  await store.close()
})
