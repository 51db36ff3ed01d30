import { BatonClient, type Outcome } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { RestartableService } from '../../../test/support/restartable-service.ts'
import { until } from '../../../test/support/until.ts'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { workThrough } from '../../client/test/support/work-through.ts'
import { exitCodes } from '../src/errors.ts'
import { waitText } from '../src/show/progress.ts'
import { baton, startBaton } from './support/baton.ts'

async function settleAll(client: BatonClient, outcome: Outcome = 'done'): Promise<void> {
  const { partitions } = await client.pull({ batch: 100 })
  const final = outcome === 'failed'
  await client.settle(partitions.map(({ lease }) => ({ leaseId: lease?.id ?? '', outcome, final })))
}

const waiting = (url: string, ...args: string[]) =>
  startBaton(['wait', '--interval', '0.1', ...args], { url })

describe('baton wait', () => {
  test('ends when every task has ended, with the code of the worst', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('good', 2))
    const one = waiting(url, 'good')
    const late = waiting(url, '--appear', 'good', 'stuck', 'stopped')
    await settleAll(client)
    expect(await one.ended).toEqual({ code: 0, stdout: 'good is done\n', stderr: '' })

    await client.callBack(descriptors('stuck', 1))
    await settleAll(client, 'failed')
    expect(await waiting(url, 'good', 'stuck').ended).toMatchObject({
      code: exitCodes.stalled,
      stdout: 'good is done\nstuck is stalled\n',
    })
    await client.callBack(descriptors('stopped', 1))
    await client.cancel('stopped')
    expect(await late.ended).toMatchObject({ code: exitCodes.cancelled })
    const json = await baton(['wait', 'stopped', '--json'], { url })
    expect(JSON.parse(json.stdout).tasks).toMatchObject([{ taskId: 'stopped', state: 'cancelled' }])
  })

  test('has a failing exit code for a task that is done with fewer partitions than expected', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('short', 1))
    await client.seal('short', { partitions: 3 })
    await settleAll(client)
    expect(await waiting(url, 'short').ended).toMatchObject({
      code: exitCodes.refused,
      stdout: expect.stringContaining('short is done, but 2 of 3'),
    })
  })

  test('fails for an unknown task, unless it may still appear', async () => {
    const { url } = await startService()
    expect(await baton(['wait', 'nothing'], { url })).toMatchObject({ code: exitCodes.nothing })
    const over = await baton(['wait', 'nothing', '--appear', '--for', '0.2'], { url })
    expect(over).toMatchObject({ code: exitCodes.timeOver, stdout: 'nothing was not seen\n' })
    expect(over.stderr).toContain('within 0.2 s')
  })

  test('prints the states when the time is over', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('ended', 1))
    await settleAll(client)
    await client.callBack(descriptors('open', 2))
    const over = await baton(['wait', 'ended', 'open', '--for', '0.2'], { url })
    expect(over).toMatchObject({
      code: exitCodes.timeOver,
      stdout: 'ended is done\nopen is open: 0 of 2 partitions done\n',
    })
    const json = await baton(['wait', 'ended', 'open', '--for', '0.2', '--json'], { url })
    expect(JSON.parse(json.stdout).tasks).toMatchObject([{ state: 'done' }, { state: 'open' }])
  })

  test('continues after the service was unavailable; Ctrl-C ends it', async () => {
    const service = await RestartableService.start()
    const client = new BatonClient(service.url)
    await client.callBack(descriptors('orders', 1))
    const wait = waiting(service.url, 'orders')
    await service.kill()
    await until(() => wait.stderr.includes('retrying until the service is available'))
    await service.startAgain()
    const other = waiting(service.url, 'orders')
    await settleAll(client)
    expect(await wait.ended).toMatchObject({ code: 0 })
    await other.ended
    await service.kill()
    const endless = waiting(service.url, 'orders')
    await until(() => endless.stderr.includes('retrying until the service is available'))
    endless.ctrlC()
    expect(await endless.ended).toMatchObject({ code: exitCodes.interrupted })
  })

  test('shows the progress in records', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('a', 4))
    await workThrough(client, 1, { outcome: 'done' })
    const task = await client.task('a')
    expect(waitText([task])).toMatch(/25 ?%.*open/)
    expect(waitText([task, null])).toContain('0 of 2 tasks')
    expect(waitText([null])).toContain('not called back yet')
  })
})
