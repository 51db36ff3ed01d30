import { BatonClient } from '@baton/client'
import { expect, test } from 'vitest'
import { sharedService } from '../../client/test/support/service.ts'
import { baton } from './support/baton.ts'

const service = sharedService()

const partition = (index: number) => ({
  taskId: 'tabled',
  computeTableName: 'story.hot',
  partition_name: `tabled-0-${index}`,
  record_count: 100,
  priorityLevel: 0,
})

test('a table is limited, paused and resumed from the command line, and shown', async () => {
  const { url } = service()
  const run = (...args: string[]) => baton(args, { url })
  const client = new BatonClient(url)
  expect(await run('table', 'story.hot')).toMatchObject({ code: 3, stdout: '' })

  // A limit may come before the first call-back.
  expect((await run('table', 'story.hot', '--max-leases', '2')).stdout).toMatch(/leases +0 of 2/)
  await client.callBack([0, 1, 2, 3].map(partition))
  const pull = async () => (await client.pull({ tables: ['story.hot'], batch: 9 })).partitions
  const pulled = await pull()
  expect(pulled).toHaveLength(2)
  expect((await run('tables')).stdout).toMatch(/story\.hot +2 of 2 +\d+ +2 .*at its limit/)

  expect((await run('table', 'story.hot', '--max-leases', 'none', '--pause')).stdout).toMatch(/paused +yes/)
  expect(await pull()).toHaveLength(0)
  expect((await client.task('tabled')).partitions).toMatchObject({ leased: 2, held: 2, ready: 0 })
  expect((await run('tasks', 'tabled')).stdout).toMatch(/0\/4 +2 +2 held +0 +400$/m)
  const shown = await run('table', 'story.hot', '--json')
  expect(JSON.parse(shown.stdout)).toMatchObject({ settings: { maxLeases: null, paused: true }, leases: 2 })

  expect((await run('table', 'story.hot', '--resume')).stdout).toMatch(/paused +no/)
  expect(await pull()).toHaveLength(2)
})

test('what is invalid changes nothing', async () => {
  const { url } = service()
  const run = (...args: string[]) => baton(['table', 'story.firm', ...args], { url })
  await run('--max-leases', '3')
  for (const invalid of [
    ['--max-leases', '0'],
    ['--max-leases', 'many'],
    ['--pause', '--resume'],
  ])
    expect(await run('--max-leases', '3', ...invalid)).toMatchObject({ code: 2, stdout: '' })
  const { settings } = await new BatonClient(url).tableSettings('story.firm')
  expect(settings).toEqual({ maxLeases: 3, paused: false })
})
