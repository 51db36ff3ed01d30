import { BatonClient, Released, Worker, type WorkerEvent, WorkerStoppedError } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { RestartableService } from '../../../test/support/restartable-service.ts'
import { until } from '../../../test/support/until.ts'
import { descriptors } from './support/descriptors.ts'
import { FaultyNetwork } from './support/faulty-network.ts'
import { rowsOf, statesOf } from './support/partition-states.ts'
import { startService } from './support/service.ts'

describe('a worker that stops', () => {
  test('lets its handlers finish and pulls nothing more', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 4))
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const worker = new Worker(client, () => gate, { concurrency: 2 }).start()
    await until(() => worker.running === 2)
    const stopped = worker.stop({ finishWithinSeconds: Number.POSITIVE_INFINITY })
    open()
    await stopped
    expect(await statesOf(client, 'orders')).toEqual(['done', 'done', 'ready', 'ready'])
  })

  test('aborts handlers at the timeout, and releases what they could not finish', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 3))
    const reasons: unknown[] = []
    const worker = new Worker(
      client,
      ({ partition_name }, { signal }) =>
        new Promise<void>((resolve, reject) => {
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason)
            // The last moment is enough for the first; the others stop.
            if (partition_name === 'orders-0-0') resolve()
            else reject(signal.reason)
          })
        }),
      { concurrency: 3 },
    ).start()
    await until(() => worker.running === 3)
    await worker.stop({ finishWithinSeconds: 0 })
    expect(reasons.every((reason) => reason instanceof WorkerStoppedError)).toBe(true)
    expect(await rowsOf(client, 'orders')).toMatchObject([
      { state: 'done' },
      { state: 'ready', attempts: 0 },
      { state: 'ready', attempts: 0 },
    ])
  })

  test('lets an aborted handler release its partition with a reason and a delay', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 1))
    const events: WorkerEvent[] = []
    const released = new Released('the table is locked', { retryAfterSeconds: 3600 })
    const worker = new Worker(
      client,
      (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(released))),
      { onEvent: (event) => events.push(event) },
    ).start()
    await until(() => worker.running === 1)
    await worker.stop({ finishWithinSeconds: 0 })
    expect(events.find(({ kind }) => kind === 'settled')).toMatchObject({
      outcome: 'released',
      reason: 'the table is locked',
    })
    expect(await rowsOf(client, 'orders')).toMatchObject([{ state: 'delayed', attempts: 0 }])
  })

  test('does not release what a handler that ignores the abort still processes', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 1))
    const events: WorkerEvent[] = []
    const worker = new Worker(client, () => new Promise<void>(() => {}), {
      onEvent: (event) => events.push(event),
    }).start()
    await until(() => worker.running === 1)
    await worker.stop({ finishWithinSeconds: 0, releaseWithinSeconds: 0 })
    expect(events.at(-1)).toMatchObject({ kind: 'stopped', abandoned: 1 })
    expect(await statesOf(client, 'orders')).toEqual(['leased'])
  })

  test('stops faster at a second call', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 1))
    const worker = new Worker(
      client,
      (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    ).start()
    await until(() => worker.running === 1)
    const patient = worker.stop({ finishWithinSeconds: Number.POSITIVE_INFINITY })
    await worker.stop({ finishWithinSeconds: 0 })
    await patient
    expect(await statesOf(client, 'orders')).toEqual(['ready'])
  })

  test('aborts a waiting pull, and leaves no lease', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    const rounds = 20
    for (let round = 0; round < rounds; round += 1) {
      const taskId = `orders-${round}`
      const worker = new Worker(client, () => {}, { waitSeconds: 60 }).start()
      // Both at once: the pull may be answered, or be aborted just then.
      await Promise.all([client.callBack(descriptors(taskId, 1)), worker.stop()])
      const [state] = await statesOf(client, taskId)
      expect(state).not.toBe('leased')
      await client.cancel(taskId).catch(() => {})
    }
  })

  test('releases the leases of a pull whose answer it never received', async () => {
    const service = await startService()
    const client = new BatonClient(service.url)
    await client.callBack(descriptors('orders', 3))
    const network = await FaultyNetwork.to(service.port)
    network.withholdAnswers(true)
    const worker = new Worker(network.url, () => {}, { concurrency: 2, waitSeconds: 0 }).start()
    await until(async () => (await statesOf(client, 'orders')).includes('leased'))
    network.withholdAnswers(false)
    await worker.stop()
    expect(await rowsOf(client, 'orders')).toMatchObject([
      { state: 'ready', attempts: 0 },
      { state: 'ready', attempts: 0 },
      { state: 'ready', attempts: 0 },
    ])
  })

  test('stops by an abort signal, at the end of a block, and only once', async () => {
    const { url } = await startService()
    const controller = new AbortController()
    const byItsSignal = new Worker(url, () => {}, { signal: controller.signal })
    const run = byItsSignal.run()
    controller.abort()
    await run
    const events: string[] = []
    {
      await using _worker = new Worker(url, () => {}, { onEvent: ({ kind }) => events.push(kind) }).start()
    }
    expect(events.filter((kind) => kind === 'stopped')).toHaveLength(1)
    const neverStarted = new Worker(url, () => {}, { signal: AbortSignal.abort() })
    await neverStarted.run()
    await neverStarted.stop()
  })

  test('is not delayed by an unavailable service', async () => {
    const service = await RestartableService.start()
    await service.kill()
    const worker = new Worker(service.url, () => {}).start()
    await worker.stop()
    expect(worker.running).toBe(0)
  })
})
