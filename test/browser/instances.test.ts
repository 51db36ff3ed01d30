import { BatonClient } from '@baton/client'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { partitionsOf, startService } from './support/service.ts'
import { accessibilityFaults, overflow, visit } from './support/visit.ts'

describe('an instance', () => {
  test('shows the partitions that a worker holds, and that a node holds none', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [2]))
    await client.pull()
    const worker = await visit(`${url}/#/instances/browser-test`)
    await worker.getByRole('region', { name: 'Totals' }).getByText('live lease').waitFor()
    const { instanceId } = await client.instanceStatus()
    const node = await visit(`${url}/#/instances/${encodeURIComponent(instanceId)}`)
    await node.getByText('of Baton', { exact: true }).waitFor()
    expect(await node.getByRole('region', { name: 'Totals' }).innerText()).not.toContain('lease')
  })

  test('is not shown without partitions when they cannot be read', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [2]))
    await client.pull()
    let isMended = false
    const prepare = async (page: Page) => {
      await page.route(/\/leases\?/, (request) =>
        isMended ? request.continue() : request.fulfill({ status: 404, body: 'somebody else' }),
      )
    }
    const page = await visit(url, { prepare, viewport: { width: 390, height: 800 } })
    await page.getByRole('link', { name: 'browser-test' }).click()
    await page.getByRole('alert').getByText('The leases could not be read.').waitFor()
    isMended = true
    await page
      .getByRole('rowheader', { name: 'orders-0-0' })
      .getByText(/lease ends/)
      .waitFor()
    expect(await overflow(page)).toBe(0)
  })
})

/** Five workers: one of them fails most of its attempts, and holds a lease. */
async function fleetWithBadHost() {
  const service = await startService('--backoff-seconds', '0', '--max-attempts', '50')
  const { client, url } = service
  await client.callBack(partitionsOf('orders', [80]))
  for (const name of ['loader-1', 'loader-2', 'loader-3', 'loader-4', 'bad-host']) {
    const worker = new BatonClient({ url, instanceId: name })
    const { partitions } = await worker.pull({ batch: 9 })
    const isBad = name === 'bad-host'
    await worker.settle(
      partitions.slice(0, 8).map(({ lease }, at) => ({
        leaseId: lease?.id ?? '',
        ...(isBad && at > 1 ? { outcome: 'failed', reason: 'disk is full' } : { outcome: 'done' }),
      })),
    )
  }
  return service
}

describe('the fleet', () => {
  test.each([{ width: 390, colorScheme: 'light' }] as const)(
    'at $width px, a bad host stands out, shows why, and is paused',
    async (look) => {
      const { url, client } = await fleetWithBadHost()
      const { width, colorScheme } = look
      const page = await visit(url, { colorScheme, viewport: { width, height: 900 } })
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Instances' }).click()
      const workers = page.getByRole('region', { name: 'Rows of workers' })
      await workers.getByRole('rowheader').first().getByText('bad-host').waitFor()
      expect(await accessibilityFaults(page)).toEqual([])
      expect(await overflow(page)).toBe(0)
      await page.getByRole('searchbox', { name: 'Search instances by name' }).fill('loader-3')
      await workers.getByRole('link', { name: 'bad-host' }).waitFor({ state: 'detached' })
      expect(page.url()).toContain('search=loader-3')
      await page
        .getByRole('region', { name: '1 worker fails far more often than the others' })
        .getByRole('link', { name: 'bad-host' })
        .click()
      await page.getByText('75% of 8 failed or expired').waitFor()
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.getByRole('region', { name: 'The instance is paused' }).waitFor()
      expect((await client.instanceStatus('bad-host')).pausedAt).toBeDefined()
      await page.getByRole('button', { name: /^Release the lease of orders-0-/ }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Release this lease' }).click()
      await page.getByText('It holds no leases.').waitFor()
      expect(await accessibilityFaults(page)).toEqual([])
      expect(await overflow(page)).toBe(0)
    },
  )
})
