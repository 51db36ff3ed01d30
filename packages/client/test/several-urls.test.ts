import { BatonClient, UnreachableError, Worker } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptors } from './support/descriptors.ts'
import { FaultyNetwork } from './support/faulty-network.ts'
import { statesOf } from './support/partition-states.ts'
import { startService } from './support/service.ts'

const NOBODY = 'http://127.0.0.1:2'

describe('a client with several URLs', () => {
  test('tries the next one at once if nothing listens, and then stays there', async () => {
    const { url } = await startService()
    const asked: (number | undefined)[] = []
    const client = new BatonClient({
      url: [NOBODY, url],
      retryForSeconds: 0,
      onRequest: ({ status }) => asked.push(status),
    })
    expect(await client.callBack(descriptors('orders', 2))).toMatchObject({ accepted: 2 })
    expect(await client.task('orders')).toMatchObject({ state: 'open' })
    expect(asked).toEqual([200, 200])
  })

  test('uses the next one for a retry after a lost answer, and nothing is done twice', async () => {
    const service = await startService()
    const network = await FaultyNetwork.to(service.port)
    const client = new BatonClient({ url: [network.url, service.url] })
    await client.callBack(descriptors('orders', 6))
    network.fallSilent()
    const worker = new Worker(
      new BatonClient({ url: [network.url, service.url], timeoutSeconds: 0.3 }),
      async () => {},
      { concurrency: 2, untilIdle: true, waitSeconds: 0 },
    )
    await worker.run()
    const direct = new BatonClient(service.url)
    expect(await statesOf(direct, 'orders')).toEqual(Array(6).fill('done'))
    expect(await direct.task('orders')).toMatchObject({ attemptsWasted: 0 })
  })

  test('reports when none answers, and refuses an empty list', async () => {
    const client = new BatonClient({ url: [NOBODY, 'http://127.0.0.1:3'], retryForSeconds: 0 })
    await expect(client.tasks()).rejects.toThrow(UnreachableError)
    await expect(client.tasks()).rejects.toThrow(/^none of http:..127.0.0.1:\d, http:..127.0.0.1:\d answers/)
    expect(() => new BatonClient({ url: [] })).toThrow('got an empty list')
    expect(() => new BatonClient({ url: [NOBODY, 'ftp://x'] })).toThrow('begins with http://')
  })
})
