import { BatonClient, Worker } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptors } from './support/descriptors.ts'
import { startService } from './support/service.ts'

describe('how many partitions are pulled', () => {
  test('partitions that end in the same iteration of the event loop are settled in one request', async () => {
    const { url } = await startService()
    const paths: string[] = []
    const client = new BatonClient({ url, onRequest: ({ path }) => paths.push(path) })
    await client.callBack(descriptors('orders', 16))
    paths.length = 0
    await new Worker(client, async () => {}, { concurrency: 8, waitSeconds: 0, untilIdle: true }).run()
    expect(paths).toEqual(['/pull', '/settle', '/settle'])
  })
})
