import { BatonClient, LeaseLostError, Worker, type WorkerEvent } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { descriptors } from './support/descriptors.ts'
import { FaultyNetwork } from './support/faulty-network.ts'
import { statesOf } from './support/partition-states.ts'
import { ProgramProcess } from './support/program-process.ts'
import { startService } from './support/service.ts'

/** Short leases that are handed out again as soon as they expire. */
const shortLeases = ['--lease-seconds', '1', '--backoff-seconds', '0', '--max-attempts', '100']

/** Short leases whose expiry hands nothing out: a slow machine must not affect these tests. */
const patientLeases = ['--lease-seconds', '4', '--backoff-seconds', '3600', '--backoff-max-seconds', '3600']

describe('held leases', () => {
  test('are renewed while handlers take longer than a lease, all in one request', async () => {
    const { url } = await startService(...patientLeases)
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 5))
    const renewed: number[] = []
    const worker = new Worker(client, () => until(() => renewed.length >= 4).then(() => {}), {
      concurrency: 5,
      waitSeconds: 0,
      untilIdle: true,
      onEvent: (event) => event.kind === 'renewed' && renewed.push(event.leases),
    })
    await worker.run()
    expect(renewed.slice(0, 4)).toEqual([5, 5, 5, 5])
    expect(await client.task('orders')).toMatchObject({ state: 'done', attemptsWasted: 0 })
  })

  test('are tracked by durations: a wall clock that jumps by hours changes nothing', async () => {
    const { url } = await startService(...patientLeases)
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 6))
    const program = ProgramProcess.start(url, { RENEWALS_TO_AWAIT: '3', CONCURRENCY: '3' }, 'clock-jumps.ts')
    await until(() => program.eventsOf('settled').length === 6)
    await program.stop()
    expect(program.eventsOf('lost')).toEqual([])
    expect(await client.task('orders')).toMatchObject({ state: 'done', attemptsWasted: 0 })
  })
})

describe('a lost lease', () => {
  test('aborts its handler, and the result of one that ignores the abort is not reported', async () => {
    const service = await startService(...shortLeases)
    const client = new BatonClient(service.url)
    await client.callBack(descriptors('orders', 1))
    const network = await FaultyNetwork.to(service.port)
    const events: WorkerEvent[] = []
    const reasons: unknown[] = []
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const worker = new Worker(
      network.url,
      async (_, { signal }) => {
        network.fallSilent()
        signal.addEventListener('abort', () => reasons.push(signal.reason))
        await gate
      },
      { waitSeconds: 0, onEvent: (event) => events.push(event) },
    ).start()

    await until(() => worker.running === 1)
    const { partitions } = await client.pull({ waitSeconds: 60 })
    await until(() => reasons.length === 1)
    expect(reasons[0]).toBeInstanceOf(LeaseLostError)
    expect(reasons[0]).toMatchObject({ code: 'lease_unrenewed' })

    // The network is back, and only now does the handler end.
    network.recover()
    open()
    await until(() => events.some(({ kind }) => kind === 'refused' || kind === 'settled'))
    await worker.stop()
    expect(events.filter((event) => 'outcome' in event && event.outcome === 'done')).toEqual([])
    const leaseId = partitions[0]?.lease?.id ?? ''
    expect(await client.settle([{ leaseId, outcome: 'done' }])).toMatchObject({ settled: [leaseId] })
  })

  test('is also the lease of a cancelled task, as the service reports', async () => {
    const { url } = await startService(...shortLeases)
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 1))
    const events: WorkerEvent[] = []
    const worker = new Worker(
      client,
      async (_, { signal }) => {
        await client.cancel('orders')
        await until(() => signal.aborted)
        return { outcome: 'done' }
      },
      { waitSeconds: 0, untilIdle: true, onEvent: (event) => events.push(event) },
    )
    await worker.run()
    expect(events.find(({ kind }) => kind === 'lost')).toMatchObject({ error: { code: 'task_cancelled' } })
    expect(events.some(({ kind }) => kind === 'settled' || kind === 'refused')).toBe(false)
    expect(await statesOf(client, 'orders')).toEqual(['cancelled'])
  })

  test('prevents a process that was stopped for longer from reporting what it did', async () => {
    const { url } = await startService(...shortLeases)
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 1))
    const program = ProgramProcess.start(url)
    await until(() => program.eventsOf('started').length === 1)
    program.send('SIGSTOP')
    const { partitions } = await client.pull({ waitSeconds: 60 })
    const leaseId = partitions[0]?.lease?.id ?? ''
    // Its handler ends just when the process continues.
    program.send('SIGUSR2')
    program.send('SIGCONT')
    await until(() => program.eventsOf('refused').length + program.eventsOf('lost').length > 0)
    expect(program.eventsOf('settled')).toEqual([])
    expect(await client.settle([{ leaseId, outcome: 'done' }])).toMatchObject({ settled: [leaseId] })
    await program.stop()
  })

  test('of a prefetched partition prevents its start', async () => {
    const { url } = await startService(...shortLeases)
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 2))
    await client.callBack(descriptors('others', 1))
    const begun: string[] = []
    const events: WorkerEvent[] = []
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const worker = new Worker(
      client,
      async ({ taskId }) => {
        begun.push(taskId)
        await gate
      },
      { prefetch: 2, waitSeconds: 0, untilIdle: true, onEvent: (event) => events.push(event) },
    ).start()
    const taken = () => events.flatMap((event) => (event.kind === 'pulled' ? event.partitions : []))
    await until(() => taken().length === 3)
    await client.cancel(begun[0] === 'orders' ? 'others' : 'orders')
    await until(() => events.some(({ kind }) => kind === 'lost'))
    open()
    await worker.stopped
    expect(new Set(begun).size).toBe(1)
  })
})
