import { BatonClient, Worker } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { descriptors } from './support/descriptors.ts'
import { statesOf } from './support/partition-states.ts'
import { startService } from './support/service.ts'

describe('a worker until idle', () => {
  /** A client that records the preferences of its requests. */
  function noting(url: string) {
    const preferences: string[] = []
    const client = new BatonClient({
      url,
      fetch: (input, init) => {
        preferences.push(new Headers(init?.headers).get('prefer') ?? '')
        return fetch(input, init)
      },
    })
    return { client, preferences }
  }

  test('keeps pulling while it holds partitions', async () => {
    const { url } = await startService()
    const { client, preferences } = noting(url)
    await client.callBack(descriptors('orders', 1))
    const handled: string[] = []
    const worker = new Worker(
      client,
      async ({ partition_name }) => {
        handled.push(partition_name)
        if (handled.length > 1) return
        await client.callBack(descriptors('orders', 2))
        await until(() => handled.length > 1)
      },
      { untilIdle: true, concurrency: 2 },
    )
    await worker.run()
    expect(handled).toEqual(['orders-0-0', 'orders-0-1'])
    expect(preferences.filter((each) => each.includes('wait='))).toEqual([])
  })

  test.each(['/pull', '/settle'])(
    'pulls again when the answer of %s was lost with its leases',
    async (path) => {
      const { url } = await startService()
      const other = new BatonClient(url)
      await other.callBack(descriptors('orders', 4))
      let losing = true
      const client = new BatonClient({
        url,
        fetch: async (input, init) => {
          const answer = await fetch(input, init)
          if (!losing || !String(input).endsWith(path)) return answer
          losing = false
          const { partitions } = (await answer.json()) as { partitions: { lease: { id: string } }[] }
          await other.settle(partitions.map(({ lease }) => ({ leaseId: lease.id, outcome: 'done' })))
          throw new TypeError('the connection broke')
        },
      })
      const handled: string[] = []
      const worker = new Worker(client, ({ partition_name }) => void handled.push(partition_name), {
        untilIdle: true,
      })
      await worker.run()
      expect(handled).toHaveLength(3)
      expect(await statesOf(other, 'orders')).toEqual(['done', 'done', 'done', 'done'])
    },
  )

  test('waits for more if a time is configured', async () => {
    const { url } = await startService()
    const { client, preferences } = noting(url)
    await client.callBack(descriptors('orders', 1))
    preferences.length = 0
    await new Worker(client, () => {}, { untilIdle: true, waitSeconds: 1 }).run()
    expect(preferences).toEqual(['batch=1, wait=1', 'batch=1', 'batch=1, wait=1'])
  })
})
