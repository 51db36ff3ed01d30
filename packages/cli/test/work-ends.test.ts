import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { FaultyNetwork } from '../../client/test/support/faulty-network.ts'
import { statesOf } from '../../client/test/support/partition-states.ts'
import { startService } from '../../client/test/support/service.ts'
import { startBaton } from './support/baton.ts'
import { Scratch } from './support/scratch.ts'

describe('a lost lease', () => {
  const shortLeases = ['--lease-seconds', '1', '--backoff-seconds', '0', '--max-attempts', '100']

  test.each([
    ['ends in order', 'trap "echo told >> $LOG; exit 0" TERM; echo begun $$ >> $LOG; sleep 1000 & wait'],
    ['continues', 'trap "echo told >> $LOG" TERM; echo begun $$ >> $LOG; while :; do sleep 0.1; done'],
  ])('ends its command, even one that %s, and the result is not reported', async (_, script) => {
    const service = await startService(...shortLeases)
    const client = new BatonClient(service.url)
    await client.callBack(descriptors('orders', 1))
    const network = await FaultyNetwork.to(service.port)
    const scratch = new Scratch()
    const log = scratch.file('log')
    const working = startBaton(['work', '--kill-after', '0.5', '--json', '--', 'sh', '-c', script], {
      url: network.url,
      env: { LOG: log },
    })
    const begun = await until(() => scratch.lines('log')[0])
    network.fallSilent()
    const { partitions } = await client.pull({ waitSeconds: 60 })
    await until(() => scratch.lines('log').includes('told'))
    await until(() => !isAlive(Number(begun.split(' ')[1])))
    network.recover()
    // The current holder is the one who settles it.
    const leaseId = partitions[0]?.lease?.id ?? ''
    expect(await client.settle([{ leaseId, outcome: 'done' }])).toMatchObject({ settled: [leaseId] })
    working.process.kill('SIGTERM')
    const { stderr } = await working.ended
    const events = stderr.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []))
    expect(events.some(({ kind }) => kind === 'lost')).toBe(true)
    expect(events.filter(({ outcome }) => outcome === 'done')).toEqual([])
  })
})

/** A worker of which this many commands have begun; they end when there is a file `gate`. */
async function atWork(
  args: readonly string[],
  { called = 1, begun = 1, flags = [] as readonly string[] } = {},
) {
  const service = await startService(...flags)
  const client = new BatonClient(service.url)
  await client.callBack(descriptors('orders', called))
  const network = await FaultyNetwork.to(service.port)
  const scratch = new Scratch()
  const script =
    'echo "$BATON_PARTITION_NAME" >> "$OUT/begun"; while [ ! -e "$OUT/gate" ]; do sleep 0.05; done'
  const working = startBaton(['work', ...args, '--', 'sh', '-c', script], {
    url: network.url,
    env: { OUT: scratch.path },
  })
  await until(() => scratch.lines('begun').length === begun)
  return { client, network, scratch, working, openGate: () => scratch.file('gate', '') }
}

describe('a worker that stops', () => {
  const twoAtWork = () => atWork(['--concurrency', '2'], { called: 4, begun: 2 })

  test('by Ctrl-C lets commands finish and starts no more', async () => {
    const { client, scratch, working, openGate } = await twoAtWork()
    working.ctrlC()
    await until(async () => (await client.pull()).partitions.length > 0)
    openGate()
    const { code, stderr } = await working.ended
    expect(stderr).toContain('finishing 2 partitions')
    expect(code).toBe(0)
    expect(scratch.lines('begun')).toHaveLength(2)
    expect((await statesOf(client, 'orders')).slice(0, 2)).toEqual(['done', 'done'])
  })

  test('by Ctrl-C twice ends commands and releases their partitions', async () => {
    const { client, working } = await twoAtWork()
    working.ctrlC()
    await until(() => working.stderr.includes('Ctrl-C again'))
    working.ctrlC()
    expect(await working.ended).toMatchObject({ code: 130 })
    expect(await statesOf(client, 'orders')).toEqual(['ready', 'ready', 'ready', 'ready'])
    expect(await client.task('orders')).toMatchObject({ attemptsWasted: 0 })
  })

  test('says which results wait for the service, and how many it never reported', async () => {
    const { network, working, openGate } = await atWork(['--kill-after', '0'])
    network.loseAnswers(1000)
    openGate()
    await until(() => working.stderr.includes('cannot be reached'))
    working.ctrlC()
    await until(() => working.stderr.includes('reporting 1 result; Ctrl-C again gives up'))
    working.ctrlC()
    expect(await working.ended).toMatchObject({ code: 130 })
    expect(working.stderr).toContain('not settled: 1 partition; the service hands them out again')
  })

  test('by a supervisor lets commands finish for as long as their leases', async () => {
    const { working, openGate } = await atWork(['--task', 'orders'], { flags: ['--lease-seconds', '77'] })
    expect(working.stderr).toContain('taking partitions of every table and the task orders\n')
    working.process.kill('SIGTERM')
    await until(() => working.stderr.includes('stopping: 1 partition can finish within 77 s'))
    openGate()
    expect(await working.ended).toMatchObject({ code: 0 })
    expect(working.stderr).toContain('1 partition done, 0 failed, 0 released, 0 lost')
  })

  test('by a supervisor releases what is not finished in time', async () => {
    const { client, working } = await atWork(['--drain-seconds', '0.1'])
    working.process.kill('SIGTERM')
    expect(await working.ended).toMatchObject({ code: 0 })
    expect(await statesOf(client, 'orders')).toEqual(['ready'])
  })
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('a worker until idle has not finished when %s stops it', async (signal, code) => {
  const { client, working, openGate } = await atWork(['--until-idle'], { called: 3, begun: 1 })
  working.process.kill(signal)
  await until(() => /finishing|stopping:/.test(working.stderr))
  openGate()
  expect(await working.ended).toMatchObject({ code })
  expect(await statesOf(client, 'orders')).toEqual(['done', 'ready', 'ready'])
})

test('no partition fails when a supervisor ends worker and commands at once', async () => {
  const { url } = await startService()
  const client = new BatonClient(url)
  await client.callBack(descriptors('orders', 2))
  const scratch = new Scratch()
  const working = startBaton(
    ['work', '--concurrency', '2', '--', 'sh', '-c', 'echo $$ >> "$OUT/pids"; exec sleep 1000'],
    {
      url,
      env: { OUT: scratch.path },
    },
  )
  await until(() => scratch.lines('pids').length === 2)
  working.process.kill('SIGTERM')
  for (const pid of scratch.lines('pids')) process.kill(Number(pid), 'SIGTERM')
  expect(await working.ended).toMatchObject({ code: 0 })
  expect(await statesOf(client, 'orders')).toEqual(['ready', 'ready'])
  expect(await client.task('orders')).toMatchObject({ attemptsWasted: 0 })
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
