import { describe, expect, test } from 'vitest'
import { partitionsOf, startService } from './support/service.ts'
import { visiting } from './support/visit.ts'

const visit = visiting()

describe('a long list of partitions', () => {
  test('has only what is looked at in the page, and the rest at hand', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [2000, 500]))
    const page = await visit(`${url}/#/tasks/orders`)
    const list = page.getByRole('region', { name: 'Rows of partitions' })
    await list.getByRole('rowheader', { name: 'orders-0-0', exact: true }).waitFor()
    const rows = list.getByRole('row')
    const last = list.getByRole('rowheader', { name: 'orders-1-499', exact: true })
    while ((await last.count()) === 0) {
      // As a person does it who has no mouse.
      await list.press('End')
      expect(await rows.count()).toBeLessThan(80)
    }
    expect(await list.getByRole('table').getAttribute('aria-rowcount')).toBe('2501')
    await list.press('Home')
    await list.getByRole('rowheader', { name: 'orders-0-0', exact: true }).waitFor()
    expect(await rows.count()).toBeLessThan(80)
  })

  test('follows what happens to the rows that are looked at', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [3]))
    const page = await visit(`${url}/#/tasks/orders`)
    const row = page.getByRole('row').filter({ hasText: 'orders-0-0' })
    await row.getByText('Ready', { exact: true }).waitFor()
    const { partitions } = await client.pull()
    await row.getByText('Leased', { exact: true }).waitFor()
    await row.getByRole('link', { name: 'browser-test' }).waitFor()
    await client.settle([{ leaseId: partitions[0]?.lease?.id ?? '', outcome: 'done' }])
    await row.getByText('Done', { exact: true }).waitFor()
  })
})
