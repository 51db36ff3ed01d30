import { BatonClient } from '@baton/client'
import { expect } from 'vitest'
import { descriptor, descriptors } from '../../../packages/client/test/support/descriptors.ts'
import { rowsOf, statesOf } from '../../../packages/client/test/support/partition-states.ts'
import { startService } from '../../../packages/client/test/support/service.ts'
import { until } from '../../support/until.ts'
import type { Cases } from '../run-cases.ts'
import { failureOf } from './calls.ts'

const untilIdle = { untilIdle: true, waitSeconds: 0 }

export const workers: Cases = {
  'settles what its handler returns or raises': async (client) => {
    const service = await startService()
    const operator = new BatonClient(service.url)
    await operator.callBack(descriptors('orders', 6))
    const worker = await client.work({
      service,
      actions: {
        'orders-0-1': { records: 9 },
        'orders-0-2': { outcome: 'error', reason: 'no space' },
        'orders-0-3': { outcome: 'failed', reason: 'no such table', final: true },
        'orders-0-4': { outcome: 'failed', reason: 'later', retryAfterSeconds: 3600 },
        'orders-0-5': { outcome: 'released', reason: 'not mine', retryAfterSeconds: 3600 },
      },
      options: untilIdle,
    })
    await worker.stopped()
    expect(await rowsOf(operator, 'orders')).toMatchObject([
      { state: 'done', reportedRecords: null },
      { state: 'done', reportedRecords: 9 },
      {
        state: 'delayed',
        attempts: 1,
        lastReason: expect.stringMatching(/no space; caused by .*the cause$/),
      },
      { state: 'parked', attempts: 1, lastReason: 'no such table' },
      { state: 'delayed', attempts: 1, lastReason: 'later' },
      { state: 'delayed', attempts: 0, lastReason: 'not mine' },
    ])
    const settled = worker.of('settled')
    expect(settled.map(({ outcome }) => outcome)).toEqual([
      'done',
      'done',
      'failed',
      'failed',
      'failed',
      'released',
    ])
    expect(settled.map(({ parked }) => parked)).toEqual([false, false, false, true, false, false])
  },

  'settles every reason, whatever characters it has': async (client) => {
    const service = await startService('--backoff-seconds', '3600', '--backoff-max-seconds', '3600')
    const operator = new BatonClient(service.url)
    await operator.callBack(descriptors('orders', 3))
    const reason = `\0\ud800${'x'.repeat(100_000)}`
    const worker = await client.work({
      service,
      actions: {
        'orders-0-0': { outcome: 'failed', reason },
        'orders-0-1': { outcome: 'failed', reason: '', retryAfterSeconds: 1e9 },
        '*': { records: -1 },
      },
      options: { ...untilIdle, concurrency: 3 },
    })
    await worker.stopped()
    expect(await statesOf(operator, 'orders')).toEqual(['delayed', 'delayed', 'done'])
  },

  'handles as many at once as configured, and needs one request for each batch': async (client) => {
    const service = await startService()
    await new BatonClient(service.url).callBack(descriptors('orders', 8))
    const worker = await client.work({
      service,
      actions: { '*': { gate: 'raises at abort' } },
      options: { concurrency: 4, waitSeconds: 0, untilIdle: true },
    })
    await until(() => worker.of('started').length === 4)
    expect(worker.paths).toEqual(['/pull'])
    await client.open()
    await until(() => worker.of('started').length === 8)
    expect(worker.of('pulled').every(({ partitions = [] }) => partitions.length <= 4)).toBe(true)
    await client.open()
    await worker.stopped()
    expect(worker.of('settled')).toHaveLength(8)
  },

  'needs one request for each partition in steady state': async (client) => {
    const service = await startService()
    await new BatonClient(service.url).callBack(descriptors('orders', 20))
    const worker = await client.work({ service, options: untilIdle })
    await worker.stopped()
    expect(worker.paths).toEqual(['/pull', ...Array.from({ length: 20 }, () => '/settle')])
    expect(worker.names('settled')).toEqual(Array.from({ length: 20 }, (_, index) => `orders-0-${index}`))
  },

  'stays within its record budget, but takes at least one partition': async (client) => {
    const service = await startService()
    const large = [descriptor('orders', 1, 0, 5000), descriptor('orders', 1, 1, 5000)]
    await new BatonClient(service.url).callBack([...descriptors('orders', 4, 100), ...large])
    const worker = await client.work({
      service,
      actions: { '*': { gate: 'raises at abort' } },
      options: { ...untilIdle, concurrency: 8, recordBudget: 250 },
    })
    // The partition that reaches the budget is still pulled.
    await until(() => worker.of('started').length === 3)
    expect(worker.of('pulled').flatMap(({ partitions }) => partitions)).toHaveLength(3)
    await until(async () => {
      await client.open()
      return worker.of('stopped').length > 0
    })
    expect(worker.of('settled')).toHaveLength(6)
    const [, ...later] = worker.of('pulled').flatMap(({ partitions = [] }) => [partitions.length])
    expect(Math.max(...later)).toBeLessThanOrEqual(2)
  },

  'starts prefetched partitions without a request in between, and releases them when it stops': async (
    client,
  ) => {
    const service = await startService()
    const operator = new BatonClient(service.url)
    await operator.callBack(descriptors('orders', 8))
    const worker = await client.work({
      service,
      actions: { '*': { gate: 'returns at abort' } },
      options: { prefetch: 3, waitSeconds: 0 },
    })
    const leased = async () => (await statesOf(operator, 'orders')).filter((state) => state === 'leased')
    await until(async () => (await leased()).length === 4)
    expect(worker.names('started')).toEqual(['orders-0-0'])
    const stopped = worker.stop()
    await until(() => worker.of('stopping').length > 0)
    await client.open()
    await stopped
    expect(worker.names('started')).toEqual(['orders-0-0'])
    const ready = Array.from({ length: 7 }, () => 'ready')
    expect(await statesOf(operator, 'orders')).toEqual(['done', ...ready])
  },

  'that waits gets what is called back at once': async (client) => {
    const service = await startService()
    const operator = new BatonClient(service.url)
    const worker = await client.work({ service, options: { waitSeconds: 60, concurrency: 2 } })
    await operator.callBack(descriptors('orders', 3))
    await until(async () => (await statesOf(operator, 'orders')).every((state) => state === 'done'))
    expect(worker.names('started').toSorted()).toEqual(['orders-0-0', 'orders-0-1', 'orders-0-2'])
    await worker.stop()
  },

  'until idle stops at the first empty pull, whatever is delayed or leased to others': async (client) => {
    const service = await startService('--backoff-seconds', '3600', '--backoff-max-seconds', '3600')
    const other = new BatonClient(service.url)
    await other.callBack(descriptors('orders', 4))
    await other.pull()
    const actions = { 'orders-0-1': { outcome: 'failed', reason: 'not today' } } as const
    const worker = await client.work({ service, actions, options: { untilIdle: true } })
    await worker.stopped()
    expect(await statesOf(other, 'orders')).toEqual(['leased', 'delayed', 'done', 'done'])
    expect(worker.paths).toEqual(['/pull', '/settle', '/settle', '/settle'])
  },

  'gets only the tables and tasks that it chose': async (client) => {
    const service = await startService()
    const operator = new BatonClient(service.url)
    await operator.callBack(descriptors('orders', 2))
    await operator.callBack([{ ...descriptor('clicks', 0, 0), computeTableName: 'results.clicks' }])
    await operator.callBack(descriptors('returns', 1))
    const options = { ...untilIdle, tables: ['results.orders', 'results.none'], tasks: ['orders', 'clicks'] }
    const worker = await client.work({ service, options })
    await worker.stopped()
    expect(worker.names('settled')).toEqual(['orders-0-0', 'orders-0-1'])
  },

  'ends with an error that no repeat can fix': async (client) => {
    const { url } = await startService()
    const worker = await client.work({ service: { url: `${url}/elsewhere` } })
    expect(await failureOf(worker.stopped())).toMatchObject({ name: 'ProblemError', code: 'route_unknown' })
    expect(worker.events.at(-1)).toMatchObject({ kind: 'stopped', error: { code: 'route_unknown' } })
  },

  'reports each outcome where the service delivers at most once': async (client) => {
    const service = await startService('--delivery', 'at-most-once')
    await new BatonClient(service.url).callBack(descriptors('orders', 3))
    const worker = await client.work({
      service,
      actions: { 'orders-0-1': { outcome: 'released', reason: 'not here' } },
      options: { ...untilIdle, prefetch: 5 },
    })
    await worker.stopped()
    expect(worker.of('unreported')).toMatchObject([
      { partition: 'orders-0-0', outcome: 'done' },
      { partition: 'orders-0-1', outcome: 'released', reason: 'not here' },
      { partition: 'orders-0-2', outcome: 'done' },
    ])
    expect(new Set(worker.paths)).toEqual(new Set(['/pull']))
    expect(worker.of('pulled').every(({ partitions = [] }) => partitions.length === 1)).toBe(true)
  },
}
