import { join } from 'node:path'
import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { workThrough } from '../../packages/client/test/support/work-through.ts'
import { openAt } from '../../packages/server/test/archive/stores.ts'
import { some } from '../../packages/server/test/store/conformance/driver.ts'
import { testFolder } from '../support/test-folder.ts'
import { partitionsOf, startService } from './support/service.ts'
import { accessibilityFaults, overflow, visit } from './support/visit.ts'

const MINUTE = 60_000

/** A store with a task that was worked on for the last hours. */
async function storeWithPast(): Promise<string> {
  const data = join(await testFolder(), 'data')
  const driver = await openAt({ data }, Date.now() - 300 * MINUTE)
  await driver.callBack('orders', [...some(0, 600, { recordCount: 1000 }), ...some(1, 40)])
  for (let minute = 0; minute < 290; minute += 10) {
    const { partitions } = await driver.pull({ batch: 4 + (minute % 40) })
    await driver.settleAll(partitions)
    driver.clock.advance(10 * MINUTE)
  }
  await driver.store.close()
  return data
}

describe('the history of a task', () => {
  test('is shown when the page is opened, and grows while it is open', async () => {
    const { url } = await startService('--data', await storeWithPast())
    const client = new BatonClient({ url, instanceId: 'browser-test' })
    const page = await visit(`${url}/#/tasks/orders`)
    const panel = page.getByRole('region', { name: 'Done per minute' })
    const chart = panel.getByRole('img')
    await panel.getByText(/^\d+ partitions, [\d,]+ records$/).waitFor()
    expect(await chart.getAttribute('aria-label')).toMatch(/^Records done per minute over 5 h .*, at most \d/)
    const lineOf = () => panel.locator('.chart-line').getAttribute('d')
    const before = await lineOf()

    await panel.getByLabel('Time').selectOption('Last 24 hours')
    const done = (await client.task('orders')).partitions.done
    await panel.getByText(`${done} partitions, `, { exact: false }).waitFor()
    expect(await lineOf()).not.toBe(before)
    await workThrough(client, 7, { outcome: 'done' })
    await panel.getByText(`${done + 7} partitions, `, { exact: false }).waitFor()

    await panel.getByLabel('Measure').selectOption('Partitions')
    await panel.getByRole('img', { name: /^Partitions done per minute over 1 d/ }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    expect(await overflow(page)).toBe(0)

    await panel.getByLabel('Time').selectOption('Last 7 days')
    const byHour = page.getByRole('region', { name: 'Done per hour' })
    await byHour.getByText(`${done + 7} partitions, `, { exact: false }).waitFor()
    await page.setViewportSize({ width: 390, height: 844 })
    expect(await overflow(page)).toBe(0)
  })

  test('is not shown for a task without done partitions', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [1]))
    const page = await visit(`${url}/#/tasks/orders`)
    await page.getByRole('rowheader', { name: 'orders-0-0' }).waitFor()
    expect(await page.getByRole('region', { name: 'Done per minute' }).count()).toBe(0)
  })
})
