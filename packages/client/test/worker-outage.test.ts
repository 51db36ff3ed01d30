import { BatonClient, Failed, Worker, type WorkerEvent } from '@baton/client'
import { expect, test } from 'vitest'
import { RestartableService } from '../../../test/support/restartable-service.ts'
import { until } from '../../../test/support/until.ts'
import { descriptors } from './support/descriptors.ts'
import { FaultyNetwork } from './support/faulty-network.ts'
import { startService } from './support/service.ts'

test('no work is lost or repeated when the service is killed and restarted repeatedly', async () => {
  const service = await RestartableService.start()
  const client = new BatonClient(service.url)
  const count = 120
  const kills = 3
  await client.callBack(descriptors('orders', count))
  const handled = new Map<string, number>()
  const events: WorkerEvent[] = []
  let finished = 0
  const gates: (() => void)[] = []
  const worker = new Worker(
    client,
    async ({ partition_name }) => {
      handled.set(partition_name, (handled.get(partition_name) ?? 0) + 1)
      await new Promise<void>((resolve) => gates.push(resolve))
      finished += 1
    },
    { concurrency: 6, prefetch: 2, onEvent: (event) => events.push(event) },
  ).start()

  for (let round = 1; round <= kills; round += 1) {
    const target = (count / (kills + 1)) * round
    await until(() => {
      for (const open of gates.splice(0)) open()
      return finished >= target
    })
    await service.kill()
    // Handlers continue meanwhile; their results wait for the service.
    for (const open of gates.splice(0)) open()
    await until(() => events.filter(({ kind }) => kind === 'away').length >= round)
    await service.startAgain()
  }
  await until(() => {
    for (const open of gates.splice(0)) open()
    return events.filter(({ kind }) => kind === 'settled').length === count
  })
  await worker.stop()

  expect([...handled.values()].every((times) => times === 1)).toBe(true)
  expect(handled.size).toBe(count)
  expect(events.filter(({ kind }) => kind === 'refused' || kind === 'lost')).toEqual([])
  expect(events.some(({ kind }) => kind === 'back')).toBe(true)
  expect(await client.task('orders')).toMatchObject({ state: 'done', attemptsWasted: 0 })
})

test('lost answers only cause retries', async () => {
  const service = await startService()
  const client = new BatonClient(service.url)
  await client.callBack(descriptors('orders', 30))
  const network = await FaultyNetwork.to(service.port)
  const handled: string[] = []
  const settled: string[] = []
  const worker = new Worker(network.url, ({ partition_name }) => void handled.push(partition_name), {
    concurrency: 3,
    waitSeconds: 1,
    onEvent: (event) => {
      if (event.kind !== 'settled') return
      settled.push(event.partition.partition_name)
      if (settled.length % 10 === 0) network.loseAnswers(2)
    },
  }).start()
  await until(() => settled.length === 30)
  await worker.stop()
  expect(network.lost).toBeGreaterThanOrEqual(4)
  expect(handled.toSorted()).toEqual(settled.toSorted())
  expect(new Set(settled).size).toBe(30)
})

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

test('a service that shuts down gracefully gets no requests until it is back', async () => {
  const service = await RestartableService.start()
  const client = new BatonClient(service.url)
  const kinds: string[] = []
  const worker = new Worker(service.url, () => {}, {
    waitSeconds: 60,
    onEvent: ({ kind }) => kinds.push(kind),
  }).start()
  await service.stop()
  await until(() => kinds.includes('away'))
  await service.startAgain()
  await client.callBack(descriptors('orders', 1))
  await until(() => kinds.includes('settled'))
  await worker.stop()
})
