import type { BatonClient } from '@baton/client'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { workThrough } from '../../packages/client/test/support/work-through.ts'
import { partitionsOf, startService } from './support/service.ts'
import { visit } from './support/visit.ts'

const figure = (page: Page, name: string) => page.locator('.figure').filter({ hasText: name })
const tab = (page: Page, name: RegExp) =>
  page.getByRole('navigation', { name: 'Tasks by state' }).getByRole('link', { name })

/** More tasks than the page reads. Stalled and leased ones are among the oldest. */
async function callBackMany(client: BatonClient): Promise<void> {
  await client.callBack(partitionsOf('stuck', [3]))
  await workThrough(client, 1, { outcome: 'failed', reason: 'no', final: true })
  await client.pull()
  for (let at = 0; at < 310; at += 10) {
    await Promise.all(
      Array.from({ length: 10 }, (_, one) => client.callBack(partitionsOf(`orders-${at + one}`, [1]))),
    )
  }
}

describe('more unfinished tasks than the page reads', () => {
  test('are all counted and listed, and stalled ones are found', async () => {
    const { url, client } = await startService()
    await callBackMany(client)
    const page = await visit(url)
    await figure(page, 'Parked').getByText('1', { exact: true }).waitFor()
    await figure(page, 'Leased').getByText('records, 1 partition of 313 left').waitFor()
    await figure(page, 'Records left').getByText('of 31.3K in 311 unfinished tasks').waitFor()
    await tab(page, /^Open 311$/).click()
    const newest = page.getByRole('link', { name: 'orders-309' })
    await newest.waitFor()
    const oldest = page.getByRole('link', { name: 'stuck' })
    expect(await oldest.count()).toBe(0)
    await page.getByRole('button', { name: 'More tasks' }).click()
    await oldest.waitFor()
    await page.getByRole('button', { name: 'More tasks' }).waitFor({ state: 'detached' })
    await tab(page, /^Needs attention 1$/).click()
    await newest.waitFor({ state: 'detached' })
    await oldest.waitFor()
    expect(await page.getByRole('link', { name: /^orders-/ }).count()).toBe(0)
    await workThrough(client, 1, { outcome: 'failed', reason: 'no', final: true })
    await figure(page, 'Parked').getByText('2', { exact: true }).waitFor()
  })

  test('are not presented as all when the service does not report the total', async () => {
    const { url, client } = await startService()
    await callBackMany(client)
    const prepare = async (page: Page) => {
      await page.route('**/totals', (request) => request.fulfill({ status: 404 }))
    }
    const page = await visit(url, { prepare })
    await figure(page, 'Parked').getByText('not known for every task').waitFor()
    await figure(page, 'Records left').getByText('in at least 300 unfinished tasks').waitFor()
    await tab(page, /^Open 300\+$/).waitFor()
    await tab(page, /^Needs attention$/).waitFor()
    expect(await page.getByText('nothing needs an operator').count()).toBe(0)
  })
})

test('a failed search is not shown as an empty result', async () => {
  const { url, client } = await startService()
  await client.callBack(partitionsOf('orders', [1]))
  const prepare = async (page: Page) => {
    await page.route(/\/tasks\?.*search=/, (request) =>
      request.fulfill({ status: 404, contentType: 'text/plain', body: 'somebody else' }),
    )
  }
  const page = await visit(`${url}/#/?search=nobody`, { prepare })
  await page.getByRole('alert').getByText('The search covers only tasks that were already read').waitFor()
  expect(await page.getByText('No task matches').count()).toBe(0)
})
