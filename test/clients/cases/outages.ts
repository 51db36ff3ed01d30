import { BatonClient } from '@baton/client'
import { expect } from 'vitest'
import { descriptors } from '../../../packages/client/test/support/descriptors.ts'
import { FaultyNetwork } from '../../../packages/client/test/support/faulty-network.ts'
import { statesOf } from '../../../packages/client/test/support/partition-states.ts'
import { startService } from '../../../packages/client/test/support/service.ts'
import { RestartableService } from '../../support/restartable-service.ts'
import { until } from '../../support/until.ts'
import type { Cases } from '../run-cases.ts'

const gated = { '*': { gate: 'raises at abort' } } as const

export const outages: Cases = {
  'loses and repeats no work, although the service is killed and restarted again and again': async (
    client,
  ) => {
    const service = await RestartableService.start()
    const operator = new BatonClient(service.url)
    const count = 120
    const kills = 3
    await operator.callBack(descriptors('orders', count))
    const worker = await client.work({
      service: { url: service.url },
      actions: gated,
      options: { concurrency: 6, prefetch: 2 },
    })
    for (let round = 1; round <= kills; round += 1) {
      const target = (count / (kills + 1)) * round
      await until(async () => {
        await client.open()
        return worker.of('started').length >= target
      })
      await service.kill()
      // Handlers continue meanwhile; their results wait for the service.
      await client.open()
      await until(() => worker.of('away').length >= round)
      await service.startAgain()
    }
    await until(async () => {
      await client.open()
      return worker.of('settled').length === count
    })
    await worker.stop()
    expect(new Set(worker.names('started')).size).toBe(count)
    expect(worker.of('started')).toHaveLength(count)
    expect([...worker.of('refused'), ...worker.of('lost')]).toEqual([])
    expect(worker.of('back').length).toBeGreaterThan(0)
    expect(await operator.task('orders')).toMatchObject({ state: 'done', attemptsWasted: 0 })
  },

  'of single answers only causes repeats': async (client) => {
    const service = await startService()
    await new BatonClient(service.url).callBack(descriptors('orders', 30))
    const network = await FaultyNetwork.to(service.port)
    const worker = await client.work({
      service: { url: network.url },
      options: { concurrency: 3, waitSeconds: 1 },
      actions: gated,
    })
    let lossesAt = 10
    await until(async () => {
      if (worker.of('settled').length >= lossesAt) {
        network.loseAnswers(2)
        lossesAt += 10
      }
      await client.open()
      return worker.of('settled').length === 30
    })
    await worker.stop()
    expect(network.lost).toBeGreaterThanOrEqual(4)
    expect(worker.names('started').toSorted()).toEqual(worker.names('settled').toSorted())
    expect(new Set(worker.names('settled')).size).toBe(30)
  },

  'delays the settling of what was finished meanwhile, which comes before the next pull': async (client) => {
    const expiring = ['--lease-seconds', '1', '--backoff-seconds', '0', '--backoff-max-seconds', '0']
    const service = await startService(...expiring)
    const operator = new BatonClient(service.url)
    await operator.callBack(descriptors('orders', 2))
    const network = await FaultyNetwork.to(service.port)
    const worker = await client.work({
      service: { url: network.url, timeoutSeconds: 0.2 },
      actions: gated,
      options: { concurrency: 2, untilIdle: true },
    })
    await until(() => worker.of('started').length === 2)
    network.fallSilent()
    await client.open()
    await until(async () => (await statesOf(operator, 'orders')).every((state) => state === 'ready'))
    network.recover()
    await worker.stopped()
    expect(worker.of('started')).toHaveLength(2)
    expect(await statesOf(operator, 'orders')).toEqual(['done', 'done'])
  },

  'that is an orderly restart is waited for': async (client) => {
    const service = await RestartableService.start()
    const worker = await client.work({ service: { url: service.url }, options: { waitSeconds: 60 } })
    await until(() => worker.events.length >= 0)
    await service.stop()
    await until(() => worker.of('away').length > 0)
    await service.startAgain()
    await new BatonClient(service.url).callBack(descriptors('orders', 1))
    await until(() => worker.of('settled').length === 1)
    await worker.stop()
  },

  'of one URL makes a worker use the next, and nothing is done twice': async (client) => {
    const service = await startService()
    const operator = new BatonClient(service.url)
    await operator.callBack(descriptors('orders', 6))
    const network = await FaultyNetwork.to(service.port)
    network.fallSilent()
    const worker = await client.work({
      service: { url: [network.url, service.url], timeoutSeconds: 0.3 },
      options: { concurrency: 2, untilIdle: true, waitSeconds: 0 },
    })
    await worker.stopped()
    expect(await statesOf(operator, 'orders')).toEqual(Array(6).fill('done'))
    expect(await operator.task('orders')).toMatchObject({ attemptsWasted: 0 })
  },
}
