import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { partitionsOf, startService } from './support/service.ts'
import { accessibilityFaults, overflow, visit } from './support/visit.ts'

/** A task whose first partition failed twice for different reasons, and is parked. */
async function stuckTask() {
  const { url, client } = await startService('--max-attempts', '2', '--backoff-seconds', '0')
  await client.callBack(partitionsOf('orders', [3]))
  for (const [worker, reason] of [
    ['loader-1', 'compute table is locked'],
    ['loader-2', 'no such table\n  at line 3'],
  ] as const) {
    const own = new BatonClient({ url, instanceId: worker })
    const { partitions } = await own.pull({ waitSeconds: 5 })
    const leaseId = partitions[0]?.lease?.id ?? ''
    await own.settle([{ leaseId, outcome: 'failed', reason }])
    // Others go first until the back-off of none has ended.
    await own.task('orders')
  }
  return { url, client }
}

describe('the attempts of a partition', () => {
  test('are shown when it is unfolded, and failures are counted by reason', async () => {
    const { url } = await stuckTask()
    const page = await visit(`${url}/#/tasks/orders`)
    const reasons = page.getByRole('list', { name: 'Failures by reason' })
    await reasons.getByText('no such table').waitFor()
    await reasons.getByText('compute table is locked').waitFor()
    await page.getByRole('button', { name: 'orders-0-0', exact: true }).click()
    const attempts = page.getByRole('list', { name: 'Attempts' })
    await attempts.getByRole('link', { name: 'loader-1' }).waitFor()
    expect(await attempts.innerText()).toContain('compute table is locked')
    expect(await accessibilityFaults(page)).toEqual([])
    expect(await overflow(page)).toBe(0)
  })
})

describe('the leases of an instance', () => {
  test('can be revoked, after a confirmation', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [2]))
    const worker = new BatonClient({ url, instanceId: 'loader-7' })
    await worker.pull({ batch: 2 })
    const page = await visit(`${url}/#/instances/loader-7`)
    await page.getByRole('button', { name: 'Release its leases…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('its work is done twice').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Release 2 leases' }).click()
    await page.getByText('2 leases released').waitFor()
    await page.getByText('It holds no leases.').waitFor()
    const { partitions } = await client.task('orders')
    expect(partitions).toMatchObject({ ready: 2, leased: 0 })
    expect(await overflow(page)).toBe(0)
  })
})
