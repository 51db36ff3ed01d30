import { BatonClient } from '@baton/client'
import { expect } from 'vitest'
import { descriptors } from '../../../packages/client/test/support/descriptors.ts'
import { FaultyNetwork } from '../../../packages/client/test/support/faulty-network.ts'
import { rowsOf, statesOf } from '../../../packages/client/test/support/partition-states.ts'
import { startService } from '../../../packages/client/test/support/service.ts'
import { RestartableService } from '../../support/restartable-service.ts'
import { until } from '../../support/until.ts'
import type { Cases } from '../run-cases.ts'

const gated = { '*': { gate: 'raises at abort' } } as const

async function called(count: number) {
  const service = await startService()
  const operator = new BatonClient(service.url)
  await operator.callBack(descriptors('orders', count))
  return { ...service, operator }
}

export const stopping: Cases = {
  'lets its handlers finish and pulls nothing more': async (client) => {
    const { url, operator } = await called(4)
    const worker = await client.work({ service: { url }, actions: gated, options: { concurrency: 2 } })
    await until(() => worker.of('started').length === 2)
    const stopped = worker.stop({ finishWithinSeconds: 1e6 })
    await until(() => worker.of('stopping').length === 1)
    await client.open()
    await stopped
    expect(await statesOf(operator, 'orders')).toEqual(['done', 'done', 'ready', 'ready'])
  },

  'at SIGTERM lets its handlers finish': async (client) => {
    const { url, operator } = await called(3)
    const program = await client.another()
    const worker = await program.work({ service: { url }, actions: gated, untilSignal: true })
    await until(() => worker.of('started').length === 1)
    program.signal('SIGTERM')
    await until(() => worker.of('stopping').length === 1)
    await program.open()
    await until(() => worker.of('stopped').length === 1)
    expect(worker.of('stopped')).toMatchObject([{ abandoned: 0 }])
    expect(await statesOf(operator, 'orders')).toEqual(['done', 'ready', 'ready'])
  },

  'aborts handlers when the time is over, and releases what they could not finish': async (client) => {
    const { url, operator } = await called(3)
    const actions = { ...gated, 'orders-0-0': { gate: 'returns at abort' } } as const
    const worker = await client.work({ service: { url }, actions, options: { concurrency: 3 } })
    await until(() => worker.of('started').length === 3)
    await worker.stop({ finishWithinSeconds: 0 })
    expect(worker.of('threw').map(({ error }) => error?.name)).toEqual(Array(2).fill('WorkerStoppedError'))
    expect(await rowsOf(operator, 'orders')).toMatchObject([
      { state: 'done' },
      { state: 'ready', attempts: 0 },
      { state: 'ready', attempts: 0 },
    ])
  },

  'lets an aborted handler release its partition with a reason and a delay': async (client) => {
    const { url, operator } = await called(1)
    const released = { outcome: 'released', reason: 'the table is locked', retryAfterSeconds: 3600 } as const
    const worker = await client.work({
      service: { url },
      actions: { '*': { gate: 'returns at abort', ...released } },
    })
    await until(() => worker.of('started').length === 1)
    await worker.stop({ finishWithinSeconds: 0 })
    expect(worker.of('settled')).toMatchObject([{ outcome: 'released', reason: 'the table is locked' }])
    expect(await rowsOf(operator, 'orders')).toMatchObject([{ state: 'delayed', attempts: 0 }])
  },

  'does not release what a handler that ignores the abort still processes': async (client) => {
    const { url, operator } = await called(1)
    const worker = await client.work({ service: { url }, actions: { '*': { gate: 'ignores abort' } } })
    await until(() => worker.of('started').length === 1)
    await worker.stop({ finishWithinSeconds: 0, releaseWithinSeconds: 0 })
    expect(worker.of('stopped')).toMatchObject([{ abandoned: 1 }])
    expect(await statesOf(operator, 'orders')).toEqual(['leased'])
    await client.open()
  },

  'stops faster at a second call': async (client) => {
    const { url, operator } = await called(1)
    const worker = await client.work({ service: { url }, actions: gated })
    await until(() => worker.of('started').length === 1)
    const patient = worker.stop({ finishWithinSeconds: 1e6 })
    await until(() => worker.of('stopping').length === 1)
    await worker.stop({ finishWithinSeconds: 0 })
    await patient
    expect(await statesOf(operator, 'orders')).toEqual(['ready'])
  },

  'aborts a waiting pull, and leaves no lease': async (client) => {
    const { url } = await startService()
    const operator = new BatonClient(url)
    for (let round = 0; round < 10; round += 1) {
      const taskId = `orders-${round}`
      const worker = await client.work({ service: { url }, options: { waitSeconds: 60 } })
      // Both at once: the pull may be answered, or be aborted just then.
      await Promise.all([operator.callBack(descriptors(taskId, 1)), worker.stop()])
      const [row] = await rowsOf(operator, taskId)
      expect(['ready', 'done']).toContain(row?.state)
      await operator.cancel(taskId).catch(() => {})
    }
  },

  'releases what it pulled without reading the answer': async (client) => {
    const { port, operator } = await called(3)
    const network = await FaultyNetwork.to(port)
    network.withholdAnswers(true)
    const worker = await client.work({
      service: { url: network.url },
      options: { concurrency: 2, waitSeconds: 0 },
    })
    await until(async () => (await statesOf(operator, 'orders')).includes('leased'))
    network.withholdAnswers(false)
    await worker.stop()
    const ready = { state: 'ready', attempts: 0 }
    expect(await rowsOf(operator, 'orders')).toMatchObject([ready, ready, ready])
  },

  'is not delayed by an unavailable service': async (client) => {
    const service = await RestartableService.start()
    await service.kill()
    const worker = await client.work({ service: { url: service.url } })
    await worker.stop()
    expect(worker.of('stopped')).toMatchObject([{ abandoned: 0 }])
  },
}
