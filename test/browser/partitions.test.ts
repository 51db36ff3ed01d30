import { describe, expect, test } from 'vitest'
import { partitionsOf, startService } from './support/service.ts'
import { visit } from './support/visit.ts'

describe('a long list of partitions', () => {
  test('renders only the visible rows, and the others on scrolling', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [2000, 500]))
    const page = await visit(`${url}/#/tasks/orders`)
    const list = page.getByRole('region', { name: 'Rows of partitions' })
    await list.getByRole('rowheader', { name: 'orders-0-0', exact: true }).waitFor()
    const rows = list.getByRole('row')
    const last = list.getByRole('rowheader', { name: 'orders-1-499', exact: true })
    while ((await last.count()) === 0) {
      // As a person without a mouse does it.
      await list.press('End')
      expect(await rows.count()).toBeLessThan(80)
    }
    expect(await list.getByRole('table').getAttribute('aria-rowcount')).toBe('2501')
    await list.press('Home')
    await list.getByRole('rowheader', { name: 'orders-0-0', exact: true }).waitFor()
    expect(await rows.count()).toBeLessThan(80)
  })

  test('updates the visible rows', async () => {
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

  test('keeps long names distinguishable and huge numbers in their column', async () => {
    const { url, client } = await startService()
    const taskId = `warehouse.finance.daily-ledger.${'rerun.'.repeat(20)}17`
    await client.callBack(partitionsOf(taskId, [2], 9_007_199_254_740))
    const page = await visit(`${url}/#/tasks/${taskId}`)
    const row = page.getByRole('row').filter({ hasText: `${taskId}-0-1` })
    const edges = async (selector: string) => {
      const box = await row.locator(selector).boundingBox()
      return box === null ? [] : [box.x, box.x + box.width]
    }
    await row.waitFor()
    const [, endOfColumn] = await edges('th')
    const [, endOfName] = await edges('bdi')
    expect(endOfName).toBeLessThanOrEqual(endOfColumn ?? 0)
    await row.getByRole('cell', { name: '9T' }).waitFor()
    expect(
      await row.evaluate((cells) =>
        [...(cells as unknown as { children: { scrollWidth: number; clientWidth: number }[] }).children]
          .slice(1)
          .filter((cell) => cell.scrollWidth > cell.clientWidth),
      ),
    ).toEqual([])
  })
})

test('a task with two compute tables names both, apart from whether it is sealed', async () => {
  const { url, client } = await startService()
  const [first, second] = partitionsOf('orders', [2])
  if (first === undefined || second === undefined) throw new Error('two partitions were expected')
  await client.callBack([first, { ...second, computeTableName: 'results.sales' }])
  const page = await visit(`${url}/#/tasks/orders`)
  await page.getByText('and results.sales · not sealed').waitFor()
})

test('a leased partition shows the progress that its worker reports, and its checkpoint', async () => {
  const { url, client } = await startService()
  await client.callBack(partitionsOf('orders', [1], 500))
  const { partitions } = await client.pull()
  const leaseId = partitions[0]?.lease?.id ?? ''
  await client.renew([{ leaseId, progress: { records: 120, note: 'sorting' }, checkpoint: 'page 3' }])
  const page = await visit(`${url}/#/tasks/orders`)
  await page.getByRole('row').filter({ hasText: '120 of 500 · sorting' }).getByRole('button').first().click()
  await page.getByText('page 3', { exact: true }).waitFor()
  await page.goto(`${url}/#/instances/browser-test`)
  await page.getByText('120 of 500 · sorting').waitFor()
})
