import { BatonClient, Worker } from '@baton/client'
import { expect, onTestFinished, test, vi } from 'vitest'
import { RestartableService } from '../../../test/support/restartable-service.ts'
import { descriptors } from './support/descriptors.ts'

/** Short leases whose expiry hands nothing out: a slow machine must not affect these tests. */
const patientLeases = ['--lease-seconds', '4', '--backoff-seconds', '3600', '--backoff-max-seconds', '3600']

const HOUR = 3_600_000
const JUMPS = [2 * HOUR, -24 * HOUR, 43_000, 365 * 24 * HOUR]

test('leases are tracked by durations: a wall clock that jumps by hours changes nothing', async () => {
  // Another process, which has the right time.
  const { url } = await RestartableService.start(...patientLeases)
  const client = new BatonClient(url)
  await client.callBack(descriptors('orders', 6))
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const lost: string[] = []
  let renewals = 0
  let end = Promise.withResolvers<void>()
  const worker = new Worker(client, () => end.promise, {
    concurrency: 3,
    waitSeconds: 0,
    untilIdle: true,
    onEvent: ({ kind }) => {
      vi.setSystemTime(Date.now() + (JUMPS[renewals % JUMPS.length] ?? 0))
      if (kind === 'lost') lost.push(kind)
      if (kind === 'renewed') renewals += 1
      if (kind !== 'lost' && (kind !== 'renewed' || renewals % 3 > 0)) return
      end.resolve()
      end = Promise.withResolvers()
    },
  })
  await worker.run()
  expect(renewals).toBeGreaterThanOrEqual(6)
  expect(lost).toEqual([])
  expect(await client.task('orders')).toMatchObject({ state: 'done', attemptsWasted: 0 })
})
