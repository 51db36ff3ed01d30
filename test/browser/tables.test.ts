import { expect, test } from 'vitest'
import { partitionsOf, startService } from './support/service.ts'
import { accessibilityFaults, overflow, visit } from './support/visit.ts'

test.each([{ width: 390, colorScheme: 'dark' }] as const)(
  'at $width px, work that nobody asks for is found, and its table is limited and paused',
  async (look) => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [5]))
    const { width, colorScheme } = look
    const page = await visit(url, { colorScheme, viewport: { width, height: 900 } })
    const finding = page.getByRole('region', { name: 'Work waits that no worker asks for' })
    await finding.getByText('no worker has asked for it yet').waitFor()
    await finding.getByRole('link', { name: 'See tables' }).click()
    const row = page.getByRole('row').filter({ hasText: 'results.orders' })
    await client.pull()
    await page.getByRole('button', { name: 'Edit results.orders' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Most leases at a time').fill('1')
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Save' }).click()
    await row.getByText('at its limit').waitFor()
    await page.getByRole('button', { name: 'Edit results.orders' }).click()
    await dialog.getByLabel(/^Paused/).check()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await row.getByText('paused', { exact: true }).waitFor()
    expect((await client.tableSettings('results.orders')).settings).toEqual({ maxLeases: 1, paused: true })
    expect(await accessibilityFaults(page)).toEqual([])
    expect(await overflow(page)).toBe(0)
  },
)
