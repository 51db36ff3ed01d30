import { BatonClient } from '@baton/client'
import { expect, test } from 'vitest'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { baton } from './support/baton.ts'

const TRACEBACK = `Traceback (most recent call last):\n${'  File "load.py", line 7\n'.repeat(9)}ValueError: no such table\n`

test('a worker that hangs: what it holds, one lease taken away, the worker paused and resumed', async () => {
  const { url } = await startService()
  const worker = new BatonClient({ url, instanceId: 'loader-7' })
  await worker.callBack(descriptors('orders', 3, 250))
  const { partitions } = await worker.pull({ batch: 3 })
  const [hung, failed] = partitions.map(({ lease }) => lease?.id ?? '')
  await worker.settle([{ leaseId: failed ?? '', outcome: 'failed', reason: TRACEBACK }])

  const seen = await baton(['status', 'loader-7'], { url })
  expect(seen.stdout).toMatch(/lease +orders-0-0: attempt 1, 250 records, since .* ago, expires in/)
  expect(seen.stdout).toMatch(/failed +orders-0-1: attempt 1, .*: … ValueError: no such table$/m)
  const json = JSON.parse((await baton(['status', 'loader-7', '--json'], { url })).stdout)
  expect(json).toMatchObject({ heldLeases: [{}, {}], lastAttempts: [{ outcome: 'failed' }] })

  expect(await baton(['release', 'orders', 'orders-0-0', '--yes'], { url })).toMatchObject({
    code: 0,
    stdout: 'orders-0-0: 1 lease revoked\n',
  })
  const { refused } = await worker.renew([hung ?? ''])
  expect(refused).toMatchObject([{ code: 'lease_lost' }])
  expect(await baton(['release', 'orders', 'orders-0-9', '--yes'], { url })).toMatchObject({ code: 3 })

  expect(await baton(['pause-instance', 'loader-7'], { url })).toMatchObject({
    code: 0,
    stdout: 'loader-7: paused; it still holds 1 lease\n',
  })
  expect(await worker.pull()).toMatchObject({ partitions: [] })
  const listed = await baton(['status', '--search', 'loader', '--sort', 'leases'], { url })
  expect(listed.stdout).toMatch(/loader-7 +worker +up, paused +1 /)
  expect((await baton(['status', '--status', 'lost'], { url })).stdout).not.toContain('loader-7')
  expect(await baton(['resume-instance', 'loader-7'], { url })).toMatchObject({
    stdout: 'loader-7: resumed\n',
  })
  expect((await worker.pull()).partitions).toHaveLength(1)
  expect(await baton(['pause-instance', 'no-such'], { url })).toMatchObject({ code: 3 })
  expect(await baton(['status', '--status', 'gone'], { url })).toMatchObject({ code: 2 })
})
