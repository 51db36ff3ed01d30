import { BatonClient, type RequestReport, Worker } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { descriptor, descriptors } from './support/descriptors.ts'
import { statesOf } from './support/partition-states.ts'
import { startService } from './support/service.ts'

describe('how many partitions are pulled', () => {
  test('is as many at once as configured, never more', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 40))
    let running = 0
    let most = 0
    const worker = new Worker(
      client,
      async () => {
        running += 1
        most = Math.max(most, running)
        await until(() => running === 4 || worker.running < 4)
        running -= 1
      },
      { concurrency: 4, waitSeconds: 0, untilIdle: true },
    )
    await worker.run()
    expect(most).toBe(4)
    expect(new Set(await statesOf(client, 'orders'))).toEqual(new Set(['done']))
  })

  test('is within the record budget, but at least one', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack([
      ...descriptors('orders', 10, 100),
      descriptor('orders', 1, 0, 5000),
      descriptor('orders', 1, 1, 5000),
    ])
    let inHand = 0
    let mostBefore = 0
    const largest: number[] = []
    const worker = new Worker(
      client,
      async ({ record_count }) => {
        mostBefore = Math.max(mostBefore, inHand)
        inHand += record_count
        if (record_count === 5000) largest.push(inHand)
        await until(() => worker.running > 0)
        inHand -= record_count
      },
      { concurrency: 8, recordBudget: 300, waitSeconds: 0, untilIdle: true },
    )
    await worker.run()
    // Pulling stops once the budget is reached: no more work is started beyond it.
    expect(mostBefore).toBeLessThan(300)
    expect(largest).toHaveLength(2)
    expect(new Set(await statesOf(client, 'orders'))).toEqual(new Set(['done']))
  })

  test('partitions that end in the same iteration of the event loop are settled in one request', async () => {
    const { url } = await startService()
    const paths: string[] = []
    const client = new BatonClient({ url, onRequest: ({ path }) => paths.push(path) })
    await client.callBack(descriptors('orders', 16))
    paths.length = 0
    await new Worker(client, async () => {}, { concurrency: 8, waitSeconds: 0, untilIdle: true }).run()
    expect(paths).toEqual(['/pull', '/settle', '/settle'])
  })

  test('in steady state each partition takes one request', async () => {
    const { url } = await startService()
    const requests: RequestReport[] = []
    const client = new BatonClient({ url, onRequest: (request) => requests.push(request) })
    await client.callBack(descriptors('orders', 20))
    requests.length = 0
    await new Worker(client, () => {}, { waitSeconds: 0, untilIdle: true }).run()
    const paths = requests.map(({ path }) => path)
    expect(paths).toEqual(['/pull', ...Array.from({ length: 20 }, () => '/settle')])
  })

  test('prefetched partitions start without a request in between, and are released if not started', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 8))
    const begun: string[] = []
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const worker = new Worker(
      client,
      async ({ partition_name }) => {
        begun.push(partition_name)
        await gate
      },
      { prefetch: 3, waitSeconds: 0 },
    ).start()
    await until(
      async () => (await statesOf(client, 'orders')).filter((state) => state === 'leased').length === 4,
    )
    expect(begun).toEqual(['orders-0-0'])
    const stopped = worker.stop()
    open()
    await stopped
    expect(begun).toEqual(['orders-0-0'])
    const ready = Array.from({ length: 7 }, () => 'ready')
    expect(await statesOf(client, 'orders')).toEqual(['done', ...ready])
  })

  test('a waiting pull is answered as soon as something is called back', async () => {
    const { url } = await startService()
    const requests: RequestReport[] = []
    const client = new BatonClient({ url, onRequest: (request) => requests.push(request) })
    const handled: string[] = []
    const worker = new Worker(client, ({ partition_name }) => void handled.push(partition_name), {
      waitSeconds: 60,
      concurrency: 2,
    }).start()
    await client.callBack(descriptors('orders', 3))
    await until(async () => (await statesOf(client, 'orders')).every((state) => state === 'done'))
    expect(handled).toEqual(['orders-0-0', 'orders-0-1', 'orders-0-2'])
    await worker.stop()
  })
})
