import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { RestartableService } from '../../../test/support/restartable-service.ts'
import { until } from '../../../test/support/until.ts'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { startBaton } from './support/baton.ts'

describe('watching a task', () => {
  test('ends with the task, with the exit code of its outcome', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('good', 2))
    const watching = startBaton(['tasks', 'good', '--watch', '--json', '--interval', '0.1'], { url })
    await until(() => watching.stdout.includes('"ready":2'))
    const { partitions } = await client.pull({ batch: 2 })
    await until(() => watching.stdout.includes('"leased":2'))
    await client.settle(partitions.map(({ lease }) => ({ leaseId: lease?.id ?? '', outcome: 'done' })))
    expect(await watching.ended).toMatchObject({ code: 0 })
    const looks = watching.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).state)
    expect(looks.at(-1)).toBe('done')

    await client.callBack(descriptors('bad', 1))
    const worse = startBaton(['tasks', 'bad', '--watch', '--interval', '0.1'], { url })
    await client.cancel('bad')
    expect(await worse.ended).toMatchObject({ code: 1 })
  })

  test('writes a line into a pipe whenever something has changed, and nothing in between', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('piped', 2))
    const watching = startBaton(['tasks', 'piped', '--watch', '--interval', '0.1'], { url })
    await until(() => watching.stdout.includes('0 of 2 partitions'))
    const { partitions } = await client.pull({ batch: 2 })
    await until(() => watching.stdout.includes('2 leased'))
    await client.settle(partitions.map(({ lease }) => ({ leaseId: lease?.id ?? '', outcome: 'done' })))
    expect(await watching.ended).toMatchObject({ code: 0 })
    const line = (rest: string) => expect.stringMatching(new RegExp(`^\\d\\d:\\d\\d:\\d\\d piped ${rest}`))
    expect(watching.stdout.trimEnd().split('\n')).toEqual([
      line('open, 0% done, 0 of 2 partitions$'),
      line('open, 0% done, 0 of 2 partitions, 2 leased'),
      line('done, 100% done, 2 of 2 partitions'),
    ])
  })

  test('ends when only an operator can continue, also behind a level barrier', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    const [low, high] = descriptors('stuck', 2)
    if (low === undefined || high === undefined) throw new Error('two partitions were asked for')
    await client.callBack([low, { ...high, partition_name: 'stuck-1-0', priorityLevel: 1 }])
    await client.levelBarrier('stuck', true)
    const watching = startBaton(['tasks', 'stuck', '--watch', '--json', '--interval', '0.1'], { url })
    const { partitions } = await client.pull()
    const leaseId = partitions[0]?.lease?.id ?? ''
    await client.settle([{ leaseId, outcome: 'failed', final: true }])
    const { code, stdout } = await watching.ended
    const last = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
    expect([code, last.state, last.partitions.held]).toEqual([1, 'stalled', 1])
  })

  test('continues after the service was unavailable, and ends with Ctrl-C', async () => {
    const service = await RestartableService.start()
    const client = new BatonClient(service.url)
    await client.callBack(descriptors('orders', 1))
    const watching = startBaton(['tasks', '--watch', '--json', '--interval', '0.1'], { url: service.url })
    await until(() => watching.stdout.includes('orders'))
    await service.kill()
    await until(() => watching.stderr.includes('cannot be reached'))
    await service.startAgain()
    await client.callBack(descriptors('later', 1))
    await until(() => watching.stdout.includes('later'))
    watching.ctrlC()
    expect(await watching.ended).toMatchObject({ code: 0 })
    expect(
      watching.stderr
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([{ note: expect.stringContaining('retrying until the service is available') }])
  })
})
