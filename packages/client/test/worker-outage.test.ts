import { BatonClient, Failed, Worker } from '@baton/client'
import { expect, test } from 'vitest'
import { descriptors } from './support/descriptors.ts'
import { startService } from './support/service.ts'

test('results that are too large for a proxy are reported in smaller requests', async () => {
  const service = await startService()
  const client = new BatonClient(service.url)
  const count = 10
  await client.callBack(descriptors('orders', count))
  const behindProxy = new BatonClient({
    url: service.url,
    fetch: async (input, init) =>
      String(init?.body ?? '').length > 3000
        ? new Response('<html>413 Request Entity Too Large</html>', { status: 413 })
        : fetch(input, init),
  })
  const allRun = Promise.withResolvers<void>()
  let running = 0
  const worker = new Worker(
    behindProxy,
    async () => {
      running += 1
      if (running === count) allRun.resolve()
      await allRun.promise
      throw new Failed('x'.repeat(1000), { final: true })
    },
    { concurrency: count, untilIdle: true },
  )
  await worker.run()
  expect(await client.task('orders')).toMatchObject({ state: 'stalled', partitions: { parked: count } })
})
