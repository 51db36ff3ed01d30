import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { tokenNamed, tokensFile } from '../../../test/support/tokens-file.ts'
import { descriptor, descriptors } from '../../client/test/support/descriptors.ts'
import { sharedService, startService } from '../../client/test/support/service.ts'
import { workThrough } from '../../client/test/support/work-through.ts'
import { baton } from './support/baton.ts'

describe('views of tasks', () => {
  const service = sharedService()

  test('ready needs no token, and fails while there is no service', async () => {
    const file = await tokensFile({ tokens: [{ name: 'all', token: tokenNamed('one'), roles: ['viewer'] }] })
    const { url } = await startService('--tokens-file', file)
    expect(await baton(['ready'], { url })).toMatchObject({ code: 0, stdout: 'ready\n' })
    expect(await baton(['ready', '--json'], { url })).toMatchObject({ stdout: '{"status":"ready"}\n' })
    expect(await baton(['status'], { url })).toMatchObject({ code: 1 })
    const nobody = await baton(['ready', '--timeout', '0'], { url: 'http://127.0.0.1:1' })
    expect(nobody).toMatchObject({ code: 5, stdout: '' })
  })

  test('tasks lists all tasks, or the levels of one', async () => {
    const { url } = service()
    const client = new BatonClient(url)
    await client.callBack([...descriptors('shown', 4, 250), descriptor('shown', 1, 0, 9000)])
    const { partitions } = await client.pull({ batch: 3 })
    const [done, parked] = partitions.map(({ lease }) => lease?.id ?? '')
    await client.settle([
      { leaseId: done ?? '', outcome: 'done' },
      { leaseId: parked ?? '', outcome: 'failed', final: true, reason: 'no\u0007 such table' },
    ])
    const list = await baton(['tasks', '--search', 'shown'], { url })
    expect(list.stdout).toMatch(/TASK +STATE +PROGRESS/)
    expect(list.stdout).toMatch(/shown +open .* 3% +1\/5 +250\/10K +1 /)
    await client.callBack(descriptors('shown-too', 1))
    const stuckOnes = await baton(['tasks', '--parked', '--search', 'shown', '--json'], { url })
    expect(JSON.parse(stuckOnes.stdout).tasks).toMatchObject([{ taskId: 'shown' }])
    const one = await baton(['tasks', 'shown'], { url })
    expect(one.stdout).toMatch(/LEVEL +PROGRESS +DONE +LEASED +WAITING +PARKED +RECORDS/)
    expect(one.stdout).toMatch(/ 0 +█+▓+░+▚+ +25% +1\/4 +1 +1 +1 +1,000/)
    expect(one.stdout).toMatch(/ 1 +░+ +0% +0\/1 +0 +1 +0 +9,000/)
    expect(one.stdout).toContain('1 of 5 partitions, 250 of 10,000 records')
    expect(one.stdout).toContain(
      '1 partition parked: baton partitions shown --state parked, baton retry shown',
    )
    const stuck = await baton(['partitions', 'shown', '--state', 'parked'], { url })
    expect(stuck.stdout).toMatch(/shown-0-1 +parked +250 +\d +no· such table/)
    const json = await baton(['tasks', 'shown', '--json'], { url })
    expect(JSON.parse(json.stdout)).toMatchObject({ taskId: 'shown', partitions: { done: 1, parked: 1 } })
    const unknown = await baton(['tasks', 'no-such'], { url })
    expect(unknown).toMatchObject({ code: 3 })
    expect(unknown.stderr).toContain('was called back')
    expect(unknown.stderr).toContain('baton tasks lists all tasks')
    expect(unknown.stderr).not.toContain('URL')
  })

  test('scale shows the number of workers for the backlog', async () => {
    const { url } = service()
    const client = new BatonClient({ url, instanceId: 'loader-7' })
    await client.callBack(descriptors('to-scale', 12, 250))
    const one = ['scale', '--task', 'to-scale', '--target', '60']
    const first = await baton(one, { url })
    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(first.stdout).toMatch(/^desired +1 worker: no pace yet: too few attempts have finished$/m)
    expect(first.stdout).toMatch(/^left +12 partitions, 3,000 records$/m)
    const { partitions } = await client.pull({ tasks: ['to-scale'], batch: 5 })
    await client.settle(
      partitions.map(({ lease }) => ({ leaseId: lease?.id ?? '', outcome: 'done' as const })),
    )
    await client.pull({ tasks: ['to-scale'], batch: 2 })
    const then = await baton(one, { url })
    expect(then.stdout).toMatch(/^desired +1 worker: .+ of lease time, 2 at a time, to be finished in 1m$/m)
    expect(then.stdout).toMatch(/^workers +1 busy, \d+ idle/m)
    expect(then.stdout).toMatch(/^partitions +5 ready, 2 leased$/m)
    const json = JSON.parse((await baton([...one, '--json'], { url })).stdout)
    expect(json).toMatchObject({ targetSeconds: 60, estimatedWorkers: 1, reason: 'pace' })
    expect(json.workers).toMatchObject({ busy: 1, leasesPerWorker: 2 })
    await client.cancel('to-scale')
    expect((await baton(one, { url })).stdout).toMatch(/^desired +0 workers: there is no backlog$/m)
    const wrong = await baton(['scale', '--table', 'orders'], { url })
    expect([wrong.code, wrong.stderr.includes('<schema>.<table>')]).toEqual([2, true])
  })

  test('throughput is shown by minute and by hour', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack([...descriptors('worked', 3, 500), descriptor('worked', 20, 0, 40)])
    const { partitions } = await client.pull({ batch: 4 })
    const before = await baton(['throughput', 'worked'], { url })
    expect(before.stdout).toMatch(/^worked: no partition was done between .+ and .+\n$/)
    await client.settle(
      partitions.map(({ lease }) => ({ leaseId: lease?.id ?? '', outcome: 'done' as const })),
    )
    const minutes = await baton(['throughput', 'worked'], { url })
    expect(minutes.stdout).toMatch(/^worked: 4 partitions, 1,540 records done\n {2}.+Z [·█]{60,61} .+Z\n/)
    expect(minutes.stdout).toMatch(/MINUTE +PARTITIONS +RECORDS\n.+:\d\dZ +4 +1,540 +█{30}/)
    const levels = await baton(['throughput', 'worked', '--step', 'hour', '--by-level'], { url })
    expect(levels.stdout).toMatch(
      /HOUR +LEVEL +PARTITIONS +RECORDS\n.+:00Z +0 +3 +1,500 +█+\n.+ 16 and up +1 +40 +█\n/,
    )
    const json = await baton(['throughput', 'worked', '--step', 'hour', '--json'], { url })
    expect(JSON.parse(json.stdout)).toMatchObject({
      taskId: 'worked',
      step: 'hour',
      points: [{ partitions: 4, records: 1540 }],
    })
    const wrong = await baton(['throughput', 'worked', '--from', 'yesterday'], { url })
    expect(wrong.code).not.toBe(0)
    expect(wrong.stderr).toContain('from must be a time with a UTC offset, such as 2026-03-01T12:00:00Z')
    expect(await baton(['throughput', 'no-such'], { url })).toMatchObject({ code: 3 })
  })

  test('parked partitions are shown with every attempt, and can be moved to another service', async () => {
    const { url } = await startService()
    const elsewhere = (await startService()).url
    const client = new BatonClient({ url, instanceId: 'loader-7' })
    await client.callBack(descriptors('stuck', 3))
    const leaseId = (await client.pull()).partitions[0]?.lease?.id ?? ''
    await client.settle([{ leaseId, outcome: 'failed', final: true, reason: 'no such table\n  in line 3' }])
    const attempts = await baton(['partitions', 'stuck', '--state', 'parked', '--history'], { url })
    expect(attempts.stdout).toMatch(/stuck-0-0 +1 +loader-7 .*failed +no such table/)
    expect((await baton(['tasks', 'stuck'], { url })).stdout).toContain('1 × no such table')
    const { stdout: parked } = await baton(['manifest', 'stuck', '--state', 'parked'], { url })
    expect(JSON.parse(parked)).toMatchObject({
      partition_name: 'stuck-0-0',
      history: [{ holder: 'loader-7' }],
    })
    const plain = await baton(['call-back', '-'], { url: elsewhere, input: parked })
    expect(plain).toMatchObject({ code: 4 })
    const taken = await baton(['call-back', '--from-manifest', '-'], { url: elsewhere, input: parked })
    expect(taken).toMatchObject({ code: 0, stdout: 'stuck: 1 partition accepted\n' })
  })

  test('a done task with missing partitions is shown as such', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    for (const taskId of ['whole', 'short']) await client.callBack(descriptors(taskId, 2))
    await client.seal('whole', { partitions: 2 })
    await client.seal('short', { partitions: 5 })
    await workThrough(client, 4, { outcome: 'done' })
    const { stdout } = await baton(['tasks'], { url })
    expect(stdout).toMatch(/\nshort +done, 3 missing .* 2\/2 /)
    expect(stdout).toMatch(/\nwhole +done +█/)
  })

  test('an empty list distinguishes no tasks from no matching tasks', async () => {
    const { url } = await startService()
    expect(await baton(['tasks'], { url })).toMatchObject({ code: 0, stdout: 'no tasks yet\n' })
    const searched = await baton(['tasks', '--search', 'nope'], { url })
    expect(searched).toMatchObject({ code: 0, stdout: 'no task matches\n' })
  })

  test('a truncated list is marked and can be continued, as text and as JSON', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    for (const taskId of ['a', 'b', 'c']) await client.callBack(descriptors(taskId, 3))
    const cursorIn = ({ stderr }: { stderr: string }) => /--cursor (\S+)/.exec(stderr)?.[1] ?? ''
    const listed = (...args: string[]) => baton([...args, '--limit', '2'], { url })

    const newest = JSON.parse((await listed('tasks', '--json')).stdout)
    const oldest = await listed('tasks', '--json', '--cursor', newest.next)
    expect(JSON.parse(oldest.stdout)).toMatchObject({ tasks: [{ taskId: 'a' }], next: null })
    const cut = await listed('tasks')
    expect(cut.stderr).toMatch(
      /^there are more: use --limit, --state or --search, or continue with --cursor \S+\n$/,
    )
    const rest = await listed('tasks', '--cursor', cursorIn(cut))
    expect(rest).toMatchObject({ stdout: expect.stringMatching(/\na +open/), stderr: '' })

    const first = JSON.parse((await listed('partitions', 'a', '--json')).stdout)
    const second = await listed('partitions', 'a', '--json', '--cursor', first.next)
    expect(JSON.parse(second.stdout)).toMatchObject({ partitions: [{ partition_name: 'a-0-2' }], next: null })
    const text = await listed('partitions', 'a', '--cursor', cursorIn(await listed('partitions', 'a')))
    expect(text).toMatchObject({ code: 0, stdout: expect.stringMatching(/\na-0-2 +ready/), stderr: '' })
  })

  test('leases of an instance are revoked after confirmation', async () => {
    const { url } = await startService()
    const worker = new BatonClient({ url, instanceId: 'loader-7' })
    await worker.callBack(descriptors('held', 2))
    await worker.pull({ batch: 2 })
    const unsure = await baton(['release', 'loader-7'], { url })
    expect(unsure.stderr).toContain('add --yes')
    expect(unsure.code).toBe(2)
    expect(await baton(['release', 'loader-7', '--yes'], { url })).toEqual({
      code: 0,
      stdout: 'loader-7: 2 leases revoked\n',
      stderr: '',
    })
    expect((await baton(['release', 'loader-7', '--yes', '--json'], { url })).stdout).toContain(
      '"released":0',
    )
    expect(await baton(['release', 'no-such', '--yes'], { url })).toMatchObject({ code: 3 })
  })

  test('control requests are carried out or refused with a reason', async () => {
    const { url } = service()
    await new BatonClient(url).callBack(descriptors('controlled', 3))
    const say = async (...args: string[]) => {
      const { stdout, stderr, code } = await baton(args, { url })
      return { code, text: stdout + stderr }
    }
    expect(await say('pause', 'controlled')).toMatchObject({
      text: expect.stringContaining('controlled is paused'),
    })
    expect(await say('resume', 'controlled')).toMatchObject({ text: expect.stringContaining('is open') })
    const barrier = 'controlled is open, level barrier on'
    expect(await say('level-barrier', 'controlled', 'on')).toEqual({ code: 0, text: `${barrier}\n` })
    expect(await say('level-barrier', 'controlled', 'on')).toEqual({
      code: 0,
      text: `${barrier} (nothing changed)\n`,
    })
    expect(await say('level-barrier', 'controlled', 'perhaps')).toMatchObject({ code: 2 })
    expect(await say('skip-parked', 'controlled')).toMatchObject({ code: 0 })
    const owner = 'controlled is open, owner orders compute'
    expect(await say('owner', 'controlled', 'orders compute')).toEqual({ code: 0, text: `${owner}\n` })
    expect(await say('owner', 'controlled', 'orders compute')).toEqual({
      code: 0,
      text: `${owner} (nothing changed)\n`,
    })
    expect(await say('owner', 'controlled')).toMatchObject({ code: 2 })
    const long = await say('owner', 'controlled', 'x'.repeat(201))
    expect(long).toMatchObject({ code: 1, text: expect.stringContaining('NAME') })
    expect(await say('seal', 'controlled', '--yes')).toEqual({
      code: 0,
      text: 'controlled is open, sealed\n',
    })
    expect(await say('seal', 'controlled', '--yes', '--partitions', '3')).toEqual({
      code: 0,
      text: 'controlled is open, sealed, 3 expected\n',
    })
    expect(await say('retry', 'controlled', '--level', '0')).toMatchObject({ code: 0 })
    expect(await say('retry', 'controlled', '--partition', 'controlled-9-9')).toMatchObject({ code: 3 })
    expect(await say('cancel', 'controlled', '--yes')).toMatchObject({
      text: 'controlled is cancelled (3 changed)\n',
    })
    expect(await say('pause', 'controlled')).toMatchObject({ code: 1 })
    expect(await say('pause', 'no-such')).toMatchObject({ code: 3 })
  })

  test.each(['n\n', 'y\n', ''])('a task is not cancelled or sealed for %j from a pipe', async (input) => {
    const { url } = service()
    await new BatonClient(url).callBack(descriptors('precious', 1))
    for (const verb of ['cancel', 'seal']) {
      const { code, stdout, stderr } = await baton([verb, 'precious'], { url, input })
      expect(stderr).toContain('add --yes')
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    }
    expect(await new BatonClient(url).task('precious')).toMatchObject({ state: 'open', sealed: false })
  })

  test.each(['named', 'of commas, and blanks'])(
    'partitions of a task %j can be named one by one or together',
    async (taskId) => {
      const { url } = await startService()
      const client = new BatonClient(url)
      await client.callBack(descriptors(taskId, 3))
      const names = descriptors(taskId, 3).map(({ partition_name }) => partition_name)
      await workThrough(client, 3, { outcome: 'done' })
      const retry = (...flags: string[]) => baton(['retry', taskId, '--done', ...flags], { url })
      const { stdout } = await retry(...names.slice(0, 2).flatMap((name) => ['--partition', name]))
      expect(stdout).toBe(`${taskId} is open (2 changed)\n`)
      const together = taskId.includes(',') ? [`--partition=${names[2]}`] : ['--partition', names.join(',')]
      expect((await retry(...together)).stdout).toBe(`${taskId} is open (1 changed)\n`)
    },
  )

  test('a refused name is printed as it was typed', async () => {
    const { url } = service()
    await new BatonClient(url).callBack(descriptors('typed', 3))
    const unknown = ['typed-0-0', 'typed-9-8', 'typed-9-9']
    const retried = await baton(['retry', 'typed', '--partition', unknown.join(',')], { url })
    expect(retried).toMatchObject({ code: 3, stdout: '' })
    expect(retried.stderr).toContain('  typed-9-8: the task does not have this partition\n  typed-9-9: ')
    expect(retried.stderr).not.toContain('typed-0-0')
    expect((await baton(['retry', 'typed', '--partition', 'a'], { url })).stderr).toContain('  a: ')
    const level = await baton(['retry', 'typed', '--level', '9'], { url })
    expect(level.stderr).toContain('\n  --level: the task has no partition on that level\n')
    expect(await baton(['seal', 'typed', '--yes', '--partitions', '2'], { url })).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'baton: the service refused the request\n' +
        '  --partitions: the task has 3 partitions already; partitions must be at least as large\n',
    })
  })

  test('a sealed task accepts nothing new, and shows what is missing', async () => {
    const { url } = service()
    await new BatonClient(url).callBack(descriptors('sealed', 3))
    expect(await baton(['seal', 'sealed', '--yes', '--partitions', '5'], { url })).toMatchObject({ code: 0 })
    const input = JSON.stringify(descriptors('sealed', 5))
    expect(await baton(['call-back', '-'], { url, input })).toMatchObject({ code: 1 })
    const { stdout } = await baton(['tasks', 'sealed'], { url })
    expect(stdout).toContain('2 partitions expected but not called back')
    expect((await baton(['seal', '--help'])).stdout).toContain('from then on new partitions are refused')
  })

  test('status shows all instances, or one with its tasks', async () => {
    const { url } = service()
    await new BatonClient({ url, instanceId: 'compute-1' }).callBack(descriptors('produced', 2))
    const all = await baton(['status'], { url })
    expect(all.stdout).toMatch(/INSTANCE +ROLE +STATUS/)
    expect(all.stdout).toMatch(/compute-1 +producer +up/)
    const one = await baton(['status', 'compute-1'], { url })
    expect(one.stdout).toContain('produced: open, 0 of 2 partitions, 0% of 20 records')
    const json = await baton(['status', 'compute-1', '--json'], { url })
    expect(JSON.parse(json.stdout)).toMatchObject({ role: 'producer' })
    expect(await baton(['status', 'no-such'], { url })).toMatchObject({ code: 3 })
  })
})
