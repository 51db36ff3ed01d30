import { BatonClient } from '@baton/client'
import { expect, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { descriptors } from './support/descriptors.ts'
import { ProgramProcess } from './support/program-process.ts'
import { startService } from './support/service.ts'

/** Short leases whose expiry hands nothing out: a slow machine must not affect these tests. */
const patientLeases = ['--lease-seconds', '4', '--backoff-seconds', '3600', '--backoff-max-seconds', '3600']

test('leases are tracked by durations: a wall clock that jumps by hours changes nothing', async () => {
  const { url } = await startService(...patientLeases)
  const client = new BatonClient(url)
  await client.callBack(descriptors('orders', 6))
  const program = ProgramProcess.start(url, { RENEWALS_TO_AWAIT: '3', CONCURRENCY: '3' }, 'clock-jumps.ts')
  await until(() => program.eventsOf('settled').length === 6)
  await program.stop()
  expect(program.eventsOf('lost')).toEqual([])
  expect(await client.task('orders')).toMatchObject({ state: 'done', attemptsWasted: 0 })
})
