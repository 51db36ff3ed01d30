import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { partitionsOf, startService } from './support/service.ts'
import { overflow, visit } from './support/visit.ts'

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
