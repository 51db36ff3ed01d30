import { describe, expect, test } from 'vitest'
import { workThrough } from '../../packages/client/test/support/work-through.ts'
import { partitionsOf, startServiceToTakeAway } from './support/service.ts'
import { accessibilityFaults, unreachable, visit } from './support/visit.ts'

describe('an unavailable service', () => {
  test('is shown as unavailable, with no live data until it is back', async () => {
    const { url, client, stop, restart } = await startServiceToTakeAway()
    await client.callBack(partitionsOf('orders', [12], 5000))
    await workThrough(client, 6, { outcome: 'done' })
    const page = await visit(url, { expected: unreachable })
    const row = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'orders' }) })
    await row.getByText(/left$/).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    // What the page has not read yet when the service leaves, it cannot show as past.
    await page
      .getByText(/\d of \d up/)
      .first()
      .waitFor()
    await stop()
    const banner = page.getByRole('alert').getByText(/has not been reachable since .*\d:\d\d:\d\d/)
    await banner.waitFor()
    await page.getByText('were up').first().waitFor()
    expect(await row.getByText(/left$|records\/s/).count()).toBe(0)
    const eta = page.locator('.figure').filter({ hasText: 'All done in' })
    expect(await eta.innerText()).toMatch(/–\s+not connected/)
    const pace = page.locator('.figure').filter({ hasText: 'Records per second' })
    expect(await pace.innerText()).toMatch(/–\s+not connected/)
    expect(await accessibilityFaults(page)).toEqual([])
    await restart()
    await banner.waitFor({ state: 'detached' })
    // The pace is measured anew from the start of a service, and an estimate needs five partitions of it.
    await workThrough(client, 5, { outcome: 'done' })
    await row.getByText(/left$/).waitFor()
    await page.getByText('over the last seconds').waitFor()
  })

  test('is explained on the page of a task and after a failed action', async () => {
    const { url, client, stop, restart } = await startServiceToTakeAway()
    await client.callBack(partitionsOf('orders', [2]))
    await client.callBack(partitionsOf('clicks', [2]))
    const page = await visit(`${url}/#/tasks/orders`, { expected: unreachable })
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    await stop()
    await page.getByRole('alert').getByText('The page shows the state of that time.').waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page
      .getByText(
        'The page will show whether the request was carried out when the service is available again.',
      )
      .waitFor()
    await page.goto(`${url}/#/tasks/clicks`)
    await page.getByText('The service cannot be reached at the moment.', { exact: true }).waitFor()
    expect(await page.getByText('Failed to fetch').count()).toBe(0)
    await restart()
    await page.getByRole('rowheader', { name: 'clicks-0-0' }).waitFor()
  })
})
