import { BatonClient } from '@baton/client'
import { expect } from 'vitest'
import { descriptors } from '../../../packages/client/test/support/descriptors.ts'
import { FaultyNetwork } from '../../../packages/client/test/support/faulty-network.ts'
import { statesOf } from '../../../packages/client/test/support/partition-states.ts'
import { startService } from '../../../packages/client/test/support/service.ts'
import { until } from '../../support/until.ts'
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
    await until(() => worker.of('renewed').length >= 4)
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
    const [begun = ''] = worker.names('started')
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
