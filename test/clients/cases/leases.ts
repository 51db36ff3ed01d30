import { BatonClient } from '@baton/client'
import { expect } from 'vitest'
import { descriptors } from '../../../packages/client/test/support/descriptors.ts'
import { FaultyNetwork } from '../../../packages/client/test/support/faulty-network.ts'
import { statesOf } from '../../../packages/client/test/support/partition-states.ts'
import { startService } from '../../../packages/client/test/support/service.ts'
import { until } from '../../support/until.ts'
import type { Action } from '../client-process.ts'
import type { Cases } from '../run-cases.ts'

/** Short leases that are handed out again as soon as they expire. */
const shortLeases = ['--lease-seconds', '1', '--backoff-seconds', '0', '--max-attempts', '100']

/** Short leases whose expiry hands nothing out: a slow machine must not affect these cases. */
const patientLeases = ['--lease-seconds', '4', '--backoff-seconds', '3600', '--backoff-max-seconds', '3600']

const gated = { '*': { gate: 'raises at abort' } } as const
const deaf = { '*': { gate: 'ignores abort' } } as const

async function called(count: number, flags: readonly string[]) {
  const service = await startService(...flags)
  const operator = new BatonClient(service.url)
  await operator.callBack(descriptors('orders', count))
  return { ...service, operator }
}

export const leases: Cases = {
  'is renewed while a handler takes longer, all leases in one request': async (client) => {
    const { url, operator } = await called(5, patientLeases)
    const worker = await client.work({
      service: { url },
      actions: gated,
      options: { concurrency: 5, untilIdle: true },
    })
    const begun = performance.now()
    await until(() => worker.of('renewed').length >= 4)
    // Each after a third of its four seconds.
    expect(performance.now() - begun).toBeLessThan(12_000)
    await client.open()
    await worker.stopped()
    expect(
      worker
        .of('renewed')
        .map(({ leases }) => leases)
        .slice(0, 4),
    ).toEqual([5, 5, 5, 5])
    expect(await operator.task('orders')).toMatchObject({ state: 'done', attemptsWasted: 0 })
  },

  'shows its progress, and its checkpoint comes with the next lease': async (client) => {
    const { url, operator } = await called(1, patientLeases)
    const [told, checkpoint] = [{ records: 40, note: `sort${'\0'}ing ${'é'.repeat(300)}` }, 'page "2" – ä']
    const progress = { records: 40, note: `sorting ${'é'.repeat(247)}…` }
    const first = await client.work({
      service: { url },
      actions: { '*': { progress: told, checkpoint, holds: true } },
      options: { waitSeconds: 0 },
    })
    await until(async () => (await operator.partitions('orders')).partitions[0]?.checkpoint === checkpoint)
    expect((await operator.partitions('orders')).partitions).toMatchObject([{ progress, checkpoint }])
    await first.stop({ finishWithinSeconds: 0, releaseWithinSeconds: 0 })
    await client.open()
    const { partitions } = await operator.partitions('orders')
    await operator.releasePartition('orders', partitions[0]?.partition_name ?? '')
    const second = await client.work({ service: { url }, options: { untilIdle: true } })
    await second.stopped()
    expect(second.of('resumed')).toMatchObject([{ checkpoint }])
    expect(second.of('settled')).toMatchObject([{ outcome: 'done' }])
    expect((await operator.partitions('orders')).partitions[0]).not.toHaveProperty('checkpoint')
  },

  'gives a checkpoint that was not sent with its settlement': async (client) => {
    const { url, operator } = await called(2, patientLeases)
    const actions = {
      'orders-0-0': { checkpoint: 'half', awaits: false, outcome: 'failed', retryAfterSeconds: 0 },
      'orders-0-1': { checkpoint: 'third', awaits: false, outcome: 'released' },
    } as const
    const worker = await client.work({ service: { url }, actions, options: { concurrency: 2 } })
    await until(() => worker.of('resumed').length >= 2)
    await worker.stop()
    const shown = (await operator.partitions('orders')).partitions.map(({ checkpoint }) => checkpoint)
    expect(shown).toEqual(['half', 'third'])
  },

  'clears a checkpoint with its settlement': async (client) => {
    const { url, operator } = await called(1, patientLeases)
    const work = async (action: Action) => {
      const worker = await client.work({
        service: { url },
        actions: { '*': action },
        options: { waitSeconds: 0 },
      })
      await until(() => worker.of('settled').length === 1)
      await worker.stop()
      return (await operator.partitions('orders')).partitions[0]
    }
    const failed = { outcome: 'failed', final: true } as const
    expect(await work({ ...failed, checkpoint: 'half' })).toMatchObject({ checkpoint: 'half' })
    await operator.retry('orders')
    expect(await work({ ...failed, checkpoint: null, awaits: false })).not.toHaveProperty('checkpoint')
  },

  'has its checkpoint sent at once, also when the answer is lost': async (client) => {
    const { port, operator } = await called(1, ['--lease-seconds', '600'])
    const network = await FaultyNetwork.to(port)
    const worker = await client.work({
      service: { url: network.url },
      actions: { '*': { gate: 'ignores abort', checkpoint: 'half', outcome: 'failed', final: true } },
    })
    await until(() => worker.of('started').length === 1)
    network.loseAnswers(2)
    await client.open()
    await until(() => worker.of('settled').length === 1)
    expect(network.lost).toBe(2)
    await worker.stop()
    expect((await operator.partitions('orders')).partitions).toMatchObject([
      { state: 'parked', checkpoint: 'half' },
    ])
  },

  'goes on if its checkpoint is too long: saving it is an error of the handler': async (client) => {
    const { url, operator } = await called(1, patientLeases)
    const worker = await client.work({
      service: { url },
      actions: { '*': { checkpoint: 'ä'.repeat(2049), outcome: 'failed' } },
      options: { untilIdle: true },
    })
    await worker.stopped()
    expect(worker.of('lost')).toEqual([])
    expect(worker.of('settled')).toMatchObject([
      { outcome: 'failed', reason: expect.stringContaining('a checkpoint has at most 4096 bytes of UTF-8') },
    ])
    expect((await operator.partitions('orders')).partitions[0]).not.toHaveProperty('checkpoint')
  },

  'that cannot be renewed in time aborts its handler, whose result is not reported': async (client) => {
    const { port, operator } = await called(1, shortLeases)
    const network = await FaultyNetwork.to(port)
    const worker = await client.work({
      service: { url: network.url },
      actions: deaf,
      options: { waitSeconds: 0 },
    })
    await until(() => worker.of('started').length === 1)
    network.fallSilent()
    const { partitions } = await operator.pull({ waitSeconds: 60 })
    await until(() => worker.of('lost').length === 1)
    expect(worker.of('lost')).toMatchObject([{ error: { name: 'LeaseLostError', code: 'lease_unrenewed' } }])

    // The network is back, and only now does the handler end.
    network.recover()
    await client.open()
    await until(() => worker.of('refused').length + worker.of('settled').length > 0)
    await worker.stop()
    expect(worker.events.filter(({ outcome }) => outcome === 'done')).toEqual([])
    const leaseId = partitions[0]?.lease?.id ?? ''
    expect(await operator.settle([{ leaseId, outcome: 'done' }])).toMatchObject({ settled: [leaseId] })
  },

  'is raised into its handler when the service says that it is lost': async (client) => {
    const { url, operator } = await called(1, shortLeases)
    const worker = await client.work({
      service: { url },
      actions: gated,
      options: { untilIdle: true },
    })
    await until(() => worker.of('started').length === 1)
    await operator.cancel('orders')
    await worker.stopped()
    expect(worker.of('lost')).toMatchObject([{ error: { code: 'task_cancelled' } }])
    expect(worker.of('threw')).toMatchObject([{ error: { name: 'LeaseLostError', code: 'task_cancelled' } }])
    expect(worker.of('settled').length + worker.of('refused').length).toBe(0)
    expect(await statesOf(operator, 'orders')).toEqual(['cancelled'])
  },

  'of a process that was stopped for longer is refused or lost': async (client) => {
    const { url, operator } = await called(1, shortLeases)
    const program = await client.another()
    const worker = await program.work({ service: { url }, actions: deaf })
    await until(() => worker.of('started').length === 1)
    program.signal('SIGSTOP')
    // The next lease lasts until the end of the test, however slow that is.
    await operator.changeSettings('orders', { leaseSeconds: 3600 })
    const { partitions } = await operator.pull({ waitSeconds: 60 })
    const leaseId = partitions[0]?.lease?.id ?? ''
    // Its handler ends just when the process continues.
    const opened = program.open()
    program.signal('SIGCONT')
    await opened
    await until(() => worker.of('refused').length + worker.of('lost').length > 0)
    expect(worker.of('settled')).toEqual([])
    expect(await operator.settle([{ leaseId, outcome: 'done' }])).toMatchObject({ settled: [leaseId] })
  },

  'of a prefetched partition that is lost prevents its start': async (client) => {
    const { url, operator } = await called(2, shortLeases)
    await operator.callBack(descriptors('others', 1))
    const worker = await client.work({
      service: { url },
      actions: gated,
      options: { prefetch: 2, untilIdle: true },
    })
    await until(() => worker.of('pulled').flatMap(({ partitions }) => partitions).length === 3)
    const begun = await until(() => worker.names('started')[0])
    await operator.cancel(begun.startsWith('orders') ? 'others' : 'orders')
    await until(() => worker.of('lost').length > 0)
    await until(async () => {
      await client.open()
      return worker.of('stopped').length > 0
    })
    const tasks = worker.names('started').map((name) => name.split('-')[0])
    expect(new Set(tasks).size).toBe(1)
  },
}
