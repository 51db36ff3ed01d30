import { BatonClient, pullEach, Worker, type WorkerEvent } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { descriptors } from './support/descriptors.ts'
import { statesOf } from './support/partition-states.ts'
import { startService } from './support/service.ts'

/** The outcome of each partition, in the order of the events. */
function endsIn(events: readonly WorkerEvent[]) {
  return events.flatMap((event) => {
    if (event.kind !== 'unreported') return []
    const { partition, outcome, reason } = event
    return [[partition.partition_name, outcome, ...(reason === undefined ? [] : [reason])]]
  })
}

describe('at-most-once delivery', () => {
  async function called(count: number) {
    const { url } = await startService('--delivery', 'at-most-once')
    const requests: string[] = []
    const client = new BatonClient({ url, onRequest: ({ path }) => requests.push(path) })
    await client.callBack(descriptors('orders', count))
    return { client, requests }
  }

  test('nothing is prefetched, since a stopping worker would lose it', async () => {
    const { client } = await called(6)
    const begun: string[] = []
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const worker = new Worker(
      client,
      async ({ partition_name }) => {
        begun.push(partition_name)
        if (begun.length === 2) await gate
      },
      { prefetch: 5 },
    ).start()
    await until(() => begun.length === 2)
    const stopped = worker.stop()
    open()
    await stopped
    expect(begun).toEqual(['orders-0-0', 'orders-0-1'])
    expect(await statesOf(client, 'orders')).toEqual(['done', 'done', 'ready', 'ready', 'ready', 'ready'])
  })

  test('leaving a loop reports the partitions it did not process', async () => {
    const { client } = await called(3)
    const events: WorkerEvent[] = []
    const options = { concurrency: 3, onEvent: (event: WorkerEvent) => void events.push(event) }
    for await (const held of pullEach(client, options)) {
      held.done()
      break
    }
    expect(endsIn(events)).toEqual([
      ['orders-0-0', 'done'],
      ['orders-0-1', 'released', 'the loop has ended'],
      ['orders-0-2', 'released', 'the loop has ended'],
    ])
  })
})

describe('more partitions without a lease than handlers, as after a restart with another delivery mode', () => {
  function threeAtOnce() {
    const pulls = [descriptors('orders', 3).map((partition) => ({ ...partition, lease: null }))]
    const answer = () => Promise.resolve(Response.json({ partitions: pulls.shift() ?? [] }))
    return new BatonClient({ url: 'http://127.0.0.1:2', fetch: answer })
  }

  test('are processed before the worker has stopped', async () => {
    const begun: string[] = []
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const worker = new Worker(threeAtOnce(), async ({ partition_name }) => {
      begun.push(partition_name)
      await gate
    }).start()
    await until(() => worker.running === 1)
    const stopped = worker.stop()
    open()
    await stopped
    expect(begun).toEqual(['orders-0-0', 'orders-0-1', 'orders-0-2'])
  })

  test('are reported if there is no time for them', async () => {
    const events: WorkerEvent[] = []
    const worker = new Worker(
      threeAtOnce(),
      (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      { onEvent: (event) => events.push(event) },
    ).start()
    await until(() => worker.running === 1)
    await worker.stop({ finishWithinSeconds: 0 })
    expect(endsIn(events).toSorted()).toEqual([
      ['orders-0-0', 'released', 'the worker stopped'],
      ['orders-0-1', 'released', 'the worker stopped'],
      ['orders-0-2', 'released', 'the worker stopped'],
    ])
    expect(events.at(-1)).toMatchObject({ kind: 'stopped', abandoned: 0 })
  })
})
