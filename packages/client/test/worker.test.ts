import { BatonClient, type HandlingOutcome, Worker } from '@baton/client'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { descriptors } from './support/descriptors.ts'
import { rowsOf, statesOf } from './support/partition-states.ts'
import { startService } from './support/service.ts'

function failing(): never {
  throw new Error('the log is full')
}

describe('outcomes', () => {
  test('whatever a handler throws or returns, its partition is settled and the worker continues', async () => {
    const { url } = await startService('--backoff-seconds', '3600', '--backoff-max-seconds', '3600')
    const client = new BatonClient(url)
    const circular = new Error('outer')
    circular.cause = new Error('inner', { cause: circular })
    let deep = new Error('level 0')
    for (let level = 1; level <= 20_000; level += 1) deep = new Error(`level ${level}`, { cause: deep })
    const unreadable = new Error('hidden')
    const refuse = () => {
      throw new TypeError('not readable')
    }
    Object.defineProperty(unreadable, 'message', { get: refuse })
    const thrown = [circular, deep, Object.create(null), unreadable, undefined]
    const returned = [
      { records: -1 },
      { records: Number.NaN },
      'a text',
      { outcome: 'failed', reason: 'later', retryAfterSeconds: Number.POSITIVE_INFINITY },
      { outcome: 'released', reason: Object.create(null), retryAfterSeconds: 3600 },
      Object.defineProperty({ outcome: 'failed' }, 'reason', { get: refuse }),
    ] as HandlingOutcome[]
    const all = thrown.length + returned.length
    await client.callBack(descriptors('orders', all))
    const worker = new Worker(
      client,
      ({ partition_name }) => {
        const index = Number(partition_name.split('-').at(-1))
        if (index < thrown.length) throw thrown[index]
        return returned[index - thrown.length]
      },
      { concurrency: 3, waitSeconds: 0, untilIdle: true },
    )
    await worker.run()
    const causes = Array.from({ length: 10 }, (_, index) => `Error: level ${20_000 - index}`)
    expect(await rowsOf(client, 'orders')).toMatchObject([
      { state: 'delayed', attempts: 1, lastReason: 'Error: outer; caused by Error: inner' },
      { state: 'delayed', attempts: 1, lastReason: causes.join('; caused by ') },
      { state: 'delayed', attempts: 1, lastReason: 'the reason cannot be converted to text' },
      { state: 'delayed', attempts: 1, lastReason: 'the reason cannot be converted to text' },
      { state: 'delayed', attempts: 1, lastReason: 'undefined' },
      { state: 'done', reportedRecords: null },
      { state: 'done', reportedRecords: null },
      { state: 'done', reportedRecords: null },
      { state: 'delayed', attempts: 1, lastReason: 'later' },
      { state: 'delayed', attempts: 0, lastReason: 'the reason cannot be converted to text' },
      { state: 'delayed', attempts: 1, lastReason: 'TypeError: not readable' },
    ])
  })

  test.each([
    ['throws', () => failing()],
    ['rejects', async () => failing()],
  ])('a listener that %s does not affect the worker', async (_, listener) => {
    const { url } = await startService()
    const complaints = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => complaints.mockRestore())
    const client = new BatonClient({ url, onRequest: listener })
    await client.callBack(descriptors('orders', 1))
    await new Worker(client, () => {}, { waitSeconds: 0, untilIdle: true, onEvent: listener }).run()
    expect(await statesOf(client, 'orders')).toEqual(['done'])
    expect(complaints).toHaveBeenCalled()
  })

  test('each call of the handler can be wrapped', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 2))
    const trace: string[] = []
    const worker = new Worker(client, ({ partition_name }) => void trace.push(partition_name), {
      waitSeconds: 0,
      untilIdle: true,
      around: async (partition, handle) => {
        trace.push(`> ${partition.partition_name}`)
        const result = await handle()
        trace.push(`< ${partition.partition_name}`)
        return result
      },
    })
    await worker.run()
    expect(trace).toEqual([
      '> orders-0-0',
      'orders-0-0',
      '< orders-0-0',
      '> orders-0-1',
      'orders-0-1',
      '< orders-0-1',
    ])
  })
})

test('an option that no worker can have is refused at once', () => {
  const url = 'http://127.0.0.1:2'
  expect(() => new Worker(url, () => {}, { concurrency: 0 })).toThrow(RangeError)
  expect(() => new Worker(url, 'load' as never)).toThrow('the handler must be a function')
  expect(() => new Worker(url, () => {}, { waitSeconds: 61 })).toThrow(RangeError)
  expect(() => new Worker(url, () => {}, { recordBudget: 0 })).toThrow(RangeError)
  expect(() => new Worker(url, () => {}, { prefetch: -1 })).toThrow(RangeError)
})
