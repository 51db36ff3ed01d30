import { BatonClient } from '@baton/client'
import { expect, test } from 'vitest'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { baton } from './support/baton.ts'

test('a bad deploy: what failed and why, and only what failed for one reason is retried', async () => {
  const { url } = await startService()
  const run = async (...args: string[]) => (await baton(args, { url })).stdout
  const worker = new BatonClient({ url, instanceId: 'loader-7' })
  await worker.callBack(descriptors('orders', 3))
  const { partitions } = await worker.pull({ batch: 3 })
  const reasons = ['ValueError: row 17 is empty', 'ValueError: row 4 is empty', 'no such table']
  await worker.settle(
    partitions.map(({ lease }, index) => ({
      leaseId: lease?.id ?? '',
      outcome: 'failed',
      reason: reasons[index] ?? '',
      final: true,
    })),
  )

  expect(await run('tasks')).toMatch(/REASON\norders .* ValueError: row # is empty\n$/)
  const shown = await run('tasks', 'orders')
  expect(shown).toContain('2 × ValueError: row # is empty')
  const [, command = '', key = ''] = /(baton retry orders --reason (valueerror\S+))/.exec(shown) ?? []
  expect(await run('partitions', 'orders', '--reason', key)).toMatch(/orders-0-0.*\n.*orders-0-1.*\n$/)
  expect(await baton(['retry', 'orders', '--reason', 'no-such'], { url })).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('--reason'),
  })

  expect(await run(...command.split(' ').slice(1))).toBe('orders is open (2 changed)\n')
  expect(await run('partitions', 'orders', '--state', 'parked')).toMatch(/orders-0-2 .*no such table\n$/)
})
