import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { ServiceProcess } from '../../../test/support/service-process.ts'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { baton } from './support/baton.ts'
import { Scratch } from './support/scratch.ts'

async function pulled(url: string): Promise<string[]> {
  const response = await fetch(`${url}/pull`, { headers: { prefer: 'batch=10' } })
  const { partitions } = (await response.json()) as { partitions: { partition_name: string }[] }
  return partitions.map((partition) => partition.partition_name)
}

test('a store is backed up, verified and moved on the command line', async () => {
  const scratch = new Scratch()
  const data = scratch.file('data')
  const service = await ServiceProcess.started([], data)
  scratch.file(
    'orders.ndjson',
    descriptors('orders', 3)
      .map((each) => JSON.stringify(each))
      .join('\n'),
  )
  await baton(['call-back', scratch.file('orders.ndjson')], { url: service.url })
  expect(await fetch(`${service.url}/pull`).then(({ status }) => status)).toBe(200)

  // While the service runs.
  const copy = scratch.file('copy.db')
  const backedUp = await baton(['backup', copy, '--data', data])
  expect(backedUp).toMatchObject({ code: 0, stdout: expect.stringMatching(/copy\.db: \d+\.\d MiB\n$/) })
  expect(statSync(copy).mode & 0o777).toBe(0o600)
  expect(await baton(['verify', '--data', data])).toMatchObject({
    code: 0,
    stdout: `OK: 1 task, 3 partitions in ${join(data, 'baton.db')}\n`,
  })
  expect(await baton(['verify', copy])).toMatchObject({
    code: 0,
    stdout: `OK: 1 task, 3 partitions in ${copy}\n`,
  })
  const twice = await baton(['backup', copy, '--data', data])
  expect(twice).toMatchObject({
    code: 1,
    stderr: `baton: ${copy} already exists; choose another name, or replace it with --force\n`,
  })
  expect((await baton(['backup', copy, '--data', data, '--force', '--json'])).code).toBe(0)
  const file = scratch.file('moved.ndjson.gz')
  const inUse = await baton(['export', file, '--data', data])
  expect(inUse).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is in use by another Baton process; stop that process'),
  })

  service.signal('SIGTERM')
  await service.exited
  expect(await baton(['export', file], { env: { BATON_DATA: data } })).toMatchObject({
    code: 0,
    stdout: `${file}: 1 task, 3 partitions exported from ${join(data, 'baton.db')}\n`,
  })
  const target = scratch.file('target')
  expect(await baton(['import', file, '--data', target])).toMatchObject({
    code: 0,
    stdout: `1 task, 3 partitions imported into ${join(target, 'baton.db')}\n`,
  })
  const again = await baton(['import', file, '--data', target, '--json'])
  expect(again.code).toBe(1)
  expect(JSON.parse(again.stderr)).toMatchObject({
    error: { detail: expect.stringContaining('the store is not empty: it has 1 task') },
  })
  const moved = await ServiceProcess.started([], target)
  expect(await pulled(moved.url)).toEqual(['orders-0-1', 'orders-0-2'])
})

test('verify exits with 1 and reports the errors', async () => {
  const scratch = new Scratch()
  const data = scratch.file('data')
  const service = await ServiceProcess.started([], data)
  scratch.file(
    'orders.ndjson',
    descriptors('orders', 3)
      .map((each) => JSON.stringify(each))
      .join('\n'),
  )
  await baton(['call-back', scratch.file('orders.ndjson')], { url: service.url })
  service.signal('SIGTERM')
  await service.exited
  const db = new DatabaseSync(join(data, 'baton.db'))
  db.exec('UPDATE lane SET "cursor" = 2')
  db.close()
  const fault = 'is ready for its first hand-out at a position where no pull finds it'
  expect(await baton(['verify', '--data', data])).toMatchObject({
    code: 1,
    stdout: `2 errors in ${join(data, 'baton.db')}\npartition orders-0-0 ${fault}\npartition orders-0-1 ${fault}\n`,
  })
  const { stdout } = await baton(['verify', '--data', data, '--json'])
  expect(JSON.parse(stdout)).toMatchObject({ sound: false, counts: { tasks: 1, partitions: 3 } })
})

test('backup refuses PostgreSQL, which has its own tools', async () => {
  const { code, stderr } = await baton(['backup', 'x.db', '--database-url', 'postgres://nowhere/baton'])
  expect(code).toBe(1)
  expect(stderr).toContain('pg_dump')
})

test('a command with two stores is refused', async () => {
  const { code, stderr } = await baton([
    'verify',
    '--data',
    'x',
    '--database-url',
    'postgres://nowhere/baton',
  ])
  expect(code).toBe(2)
  expect(stderr).toContain('--data and --database-url cannot be combined')
})

test('a folder on the command line is used, whatever database the environment names', async () => {
  const data = new Scratch().file('data')
  const env = { BATON_DATABASE_URL: 'postgres://127.0.0.1:1/baton' }
  const service = await ServiceProcess.started([], data, env)
  service.signal('SIGTERM')
  await service.exited
  expect(await baton(['verify', '--data', data], { env })).toMatchObject({
    code: 0,
    stdout: `OK: 0 tasks, 0 partitions in ${join(data, 'baton.db')}\n`,
  })
  // In the environment, the database is used.
  const { code, stderr } = await baton(['verify'], { env: { ...env, BATON_DATA: data } })
  expect([code, stderr]).toEqual([1, expect.stringContaining('127.0.0.1:1')])
})

test('verify of a file that cannot be read names that file, not a data folder', async () => {
  const scratch = new Scratch()
  const cut = scratch.file('cut.db', `SQLite format 3\0 and no more`)
  const { code, stderr } = await baton(['verify', cut])
  expect([code, stderr]).toEqual([1, `baton: ${cut} is damaged, or not a data file or backup of Baton\n`])
  const absent = scratch.file('absent.db')
  expect((await baton(['verify', absent])).stderr).toBe(`baton: ${absent} does not exist\n`)
})
