import { chmodSync, chownSync, readFileSync, statSync } from 'node:fs'
import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { baton } from './support/baton.ts'
import { Scratch } from './support/scratch.ts'

const create = (...flags: string[]) => baton(['token', 'create', ...flags])

describe('baton token create', () => {
  test('prints the token, and the line for the file with only its hash', async () => {
    const { code, stdout, stderr } = await create('--name', 'fleet', '--role', 'worker')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^baton_[\w-]{43}\n$/)
    const entry = JSON.parse(stderr.replace(/^.*?: /, ''))
    expect(entry).toEqual({
      name: 'fleet',
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      roles: ['worker'],
    })
    expect(stderr).not.toContain(stdout.trim())
    expect((await create('--name', 'fleet', '--role', 'worker')).stdout).not.toBe(stdout)
  })

  test('adds the token with its limits to a file that a service accepts', async () => {
    const file = new Scratch().file('tokens.json')
    const made = await create(
      '--name',
      'ops',
      '--role',
      'operator,viewer',
      '--tasks',
      'sales-,returns-',
      '--file',
      file,
    )
    expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining(`Added to ${file}`) })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const sales = ['--name', 'sales', '--role', 'producer', '--tables', 'results.orders', '--tasks', 'sales-']
    const limits = ['--max-open-tasks', '20', '--max-waiting-partitions', '5000']
    const { stdout } = await create(...sales, ...limits, '--file', file, '--json')
    const { token, entry } = JSON.parse(stdout)
    expect(entry).toMatchObject({
      name: 'sales',
      roles: ['producer'],
      maxOpenTasks: 20,
      maxWaitingPartitions: 5000,
      tasks: ['sales-'],
      tables: ['results.orders'],
    })
    expect(JSON.parse(readFileSync(file, 'utf8')).tokens).toEqual([
      expect.objectContaining({ name: 'ops', roles: ['operator', 'viewer'], tasks: ['sales-', 'returns-'] }),
      entry,
    ])
    const { url } = await startService('--tokens-file', file)
    const producer = new BatonClient({ url, token })
    expect(await producer.callBack(descriptors('sales-1', 2))).toMatchObject({ accepted: 2 })
    await expect(producer.callBack(descriptors('stock-1', 2))).rejects.toMatchObject({
      code: 'token_limited',
    })
    const operator = made.stdout.trim()
    const orders = await baton(['pause', 'sales-1'], { url, env: { BATON_TOKEN: operator } })
    expect(orders.stdout).toBe('sales-1 is paused (1 changed)\n')
  })

  test('keeps the mode and the owner of a file', async () => {
    const file = new Scratch().file('tokens.json')
    await create('--name', 'one', '--role', 'worker', '--file', file)
    chmodSync(file, 0o640)
    // Only root can give a file to another user.
    const { uid, gid } = process.getuid?.() === 0 ? { uid: 12_345, gid: 12_346 } : statSync(file)
    chownSync(file, uid, gid)
    await create('--name', 'two', '--role', 'worker', '--file', file)
    expect(statSync(file).mode & 0o777).toBe(0o640)
    expect(statSync(file)).toMatchObject({ uid, gid })
  })

  test.each([
    [['create', '--role', 'worker'], 'token create requires --name'],
    [['create', '--name', 'x'], 'token create requires --role: producer, worker, operator, viewer'],
    [['make', '--name', 'x'], 'token requires create'],
    [['create', '--name', 'x', '--role', 'admin'], '/tokens/0/roles/0, which must be one of producer'],
    [['create', '--name', 'x', '--role', 'producer', '--tables', 'orders'], 'must be a table in the form'],
    [
      ['create', '--name', 'x', '--role', 'worker', '--tasks', 'sales-'],
      'the entry limits "x" to tasks, but the pulls of a worker cannot be limited to task prefixes',
    ],
  ])('%j is refused: %s', async (argv, fault) => {
    const { code, stdout, stderr } = await baton(['token', ...argv])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(fault)
  })

  test('does not change a file that is not a tokens file', async () => {
    const file = new Scratch().file('tokens.json', '{"tokens": [')
    const { code, stderr } = await create('--name', 'x', '--role', 'worker', '--file', file)
    expect([code, readFileSync(file, 'utf8')]).toEqual([2, '{"tokens": ['])
    expect(stderr).toContain(`the tokens file ${file} is not JSON`)
  })
})

test('baton audit lists who did what, and baton call-back --seal seals the task', async () => {
  const scratch = new Scratch()
  const file = scratch.file('tokens.json')
  const token = async (name: string, role: string) =>
    (await create('--name', name, '--role', role, '--file', file)).stdout.trim()
  const producer = { BATON_TOKEN: await token('compute', 'producer') }
  const operator = { BATON_TOKEN: await token('on call', 'operator') }
  const { url } = await startService('--tokens-file', file)
  expect((await baton(['audit'], { url, env: operator })).stdout).toBe('no changes\n')
  const lines = scratch.file(
    'p.ndjson',
    descriptors('orders', 3)
      .map((one) => JSON.stringify(one))
      .join('\n'),
  )
  const called = await baton(['call-back', '--seal', '--partitions', '3', lines], { url, env: producer })
  expect(called).toMatchObject({ code: 0, stdout: 'orders: 3 partitions accepted; the task is sealed\n' })
  const shown = await baton(['tasks', 'orders', '--json'], { url, env: producer })
  expect(JSON.parse(shown.stdout)).toMatchObject({
    sealed: true,
    expectedPartitions: 3,
    calledBackBy: ['compute'],
  })
  await baton(['pause', 'orders'], { url, env: operator })
  const paused = await baton(['tasks', 'orders'], { url, env: operator })
  expect(paused.stdout).toMatch(/^paused by on call .* ago, sealed by compute .* ago$/m)
  const refused = await baton(['pause', 'orders'], { url, env: producer })
  expect(refused.code).toBe(1)
  const { stdout } = await baton(['audit', '--json', '--limit', '2'], { url, env: operator })
  expect(JSON.parse(stdout).entries).toMatchObject([
    { name: 'on call', action: 'pause', taskId: 'orders', changed: 1, request: null },
    { name: 'compute', action: 'seal', taskId: 'orders', request: { 'Baton-Seal': '3' } },
  ])
  const table = await baton(['audit', '--task', 'orders', '--name', 'on call'], { url, env: operator })
  expect(table.stdout).toMatch(/on call\s+127\.0\.0\.1\s+pause\s+orders\s+1/)
  expect(table.stdout).not.toContain('seal')
  const node = await baton(['audit', '--node'], { url, env: operator })
  expect(node.stdout).toMatch(/compute\s+127\.0\.0\.1\s+POST \/tasks\/orders\/pause\s+token_refused/)
  const both = await baton(['audit', '--node', '--task', 'orders'], { url, env: operator })
  expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining('omit --task and --name') })
  const alone = await baton(['call-back', '--partitions', '3', lines], { url, env: producer })
  expect(alone).toMatchObject({ code: 2, stderr: expect.stringContaining('--partitions requires --seal') })
})
