import { copyFileSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ServiceProcess } from '../../../../test/support/service-process.ts'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { backUp, exportStore, importStore, verify } from '../../src/archive/store-tools.ts'
import { RandomLife } from './random-states.ts'
import { openAt, rowsIn, startOfTests, viewsOf } from './stores.ts'

/** As docs/backup.md describes it. */
async function restored(file: string): Promise<string> {
  const folder = join(await testFolder(), 'restored')
  mkdirSync(folder)
  copyFileSync(file, join(folder, 'baton.db'))
  return folder
}

test('a backup of a store in use has everything that was answered, including entries that are not flushed yet', async () => {
  const data = join(await testFolder(), 'data')
  const file = join(await testFolder(), 'copy.db')
  const driver = await openAt({ data }, startOfTests)
  const life = new RandomLife(driver, 7)
  await life.live(150)
  // Its effect is durable, and no view has caused a flush since.
  const { partitions } = await driver.pull({ batch: 5, key: 'the-last' })
  const taken = partitions.map(({ lease }) => lease?.id)
  expect(taken.length).toBeGreaterThan(0)

  await backUp({ data }, { file })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect((await verify(file)).findings).toEqual([])

  const copy = { data: await restored(file) }
  const again = await openAt(copy, driver.clock.now())
  const repeated = await again.pull({ batch: 5, key: 'the-last' })
  expect(repeated.partitions.map(({ lease }) => lease?.id)).toEqual(taken)
  expect(await viewsOf(again)).toEqual(await viewsOf(driver))
  await again.store.close()
  await driver.store.close()
  expect(await rowsIn(copy)).toEqual(await rowsIn({ data }))

  // An export of the files after a crash is complete, too.
  const crashed = { data: await restored(file) }
  const moved = { data: join(await testFolder(), 'moved') }
  const exported = join(await testFolder(), 'export.ndjson')
  await exportStore(crashed, { file: exported })
  await importStore(moved, { file: exported })
  expect(await rowsIn(moved)).toEqual(await rowsIn({ data }))
})

test('a backup completes while the service keeps committing', async () => {
  const data = await testFolder()
  const file = join(await testFolder(), 'copy.db')
  const service = await ServiceProcess.started([], data)
  let isOver = false
  let calledBack = 0
  const working = (async () => {
    while (!isOver) {
      const partitions = Array.from({ length: 500 }, (_, index) => ({
        taskId: `task-${calledBack}`,
        computeTableName: 'results.orders',
        partition_name: `task-${calledBack}-0-${index}`,
        record_count: 100,
        priorityLevel: 0,
      }))
      const response = await fetch(`${service.url}/call-back`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(partitions),
      })
      expect(response.status).toBe(200)
      calledBack += 1
    }
  })()
  while (calledBack < 20) await new Promise((resolve) => setTimeout(resolve, 5))
  const before = calledBack
  const told: [number, number][] = []
  await backUp({ data }, { file, progress: (done, total) => told.push([done, total]) })
  isOver = true
  await working

  expect(told.length).toBeGreaterThan(0)
  for (const [done, total] of told) expect(done).toBeLessThanOrEqual(total)
  const { findings, counts } = await verify({ data: await restored(file) })
  expect(findings).toEqual([])
  expect(counts.partitions).toBeGreaterThanOrEqual(before * 500)
  // The store itself can be backed up while it is in use.
  expect((await verify({ data })).findings).toEqual([])
})

test('an existing file is replaced only on request, and a failure leaves no file', async () => {
  const data = await testFolder()
  const folder = await testFolder()
  const file = join(folder, 'copy.db')
  await (await openAt({ data }, startOfTests)).store.close()
  writeFileSync(file, 'precious')
  await expect(backUp({ data }, { file })).rejects.toThrow('already exists')
  expect(statSync(file).size).toBe(8)
  await backUp({ data }, { file, mayReplace: true })
  expect((await verify(file)).counts.tasks).toBe(0)

  const nowhere = join(folder, 'nowhere')
  await expect(backUp({ data: nowhere }, { file: join(folder, 'other.db') })).rejects.toThrow(
    'does not exist',
  )
  expect(readdirSync(folder)).toEqual(['copy.db'])
})
