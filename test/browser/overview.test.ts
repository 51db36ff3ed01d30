import { BatonClient, Worker } from '@baton/client'
import { checkCallBack } from '@baton/protocol'
import type { Page } from 'playwright-core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { workThrough } from '../../packages/client/test/support/work-through.ts'
import { partitionsOf, startService } from './support/service.ts'
import { listenTo, visit } from './support/visit.ts'

describe('the overview', () => {
  test('shows a new user how to call back, with a command that works', async () => {
    const { url } = await startService()
    const page = await visit(url)
    await page.getByRole('heading', { name: 'Baton is ready for its first task' }).waitFor()
    const command = await page.getByRole('region', { name: 'A first call-back' }).innerText()
    expect(command).toContain(`curl -X POST ${url}/call-back`)
    const body: unknown = JSON.parse(/-d '([^']*)'/.exec(command)?.[1] ?? '')
    expect(checkCallBack(body)).toMatchObject({ ok: true })
    await fetch(`${url}/call-back`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    await page.getByRole('link', { name: 'first', exact: true }).waitFor()
  })

  test('follows a task while real workers work on it', async () => {
    const { url, client } = await startService()
    const page = await visit(url)
    await page.getByText('Live', { exact: true }).waitFor()
    await client.callBack(partitionsOf('orders', [2, 2], 5000))
    const row = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'orders' }) })
    await row.getByText('0%').waitFor()

    // The workers continue when the test says so, so that the page's content does not depend on timing.
    const held: (() => void)[] = []
    const arrived = () => expect.poll(() => held.length).toBe(2)
    const handler = () => new Promise<void>((resolve) => held.push(resolve))
    const workers = ['loader-1', 'loader-2'].map(
      (instanceId) => new Worker(new BatonClient({ url, instanceId }), handler),
    )
    for (const worker of workers) worker.run().catch(() => {})
    onTestFinished(async () => {
      for (const go of held.splice(0)) go()
      await Promise.all(workers.map((worker) => worker.stop()))
    })
    await arrived()
    await page.getByText('records, 2 partitions of 4 left').waitFor()
    held.shift()?.()
    await row.getByText('25%').waitFor()
    await arrived()
    held.shift()?.()
    await row.getByText('50%').waitFor()
    await arrived()
    for (const go of held.splice(0)) go()
    await row.getByText('100%').waitFor()
    await row.getByText('Done', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'loader-1' }).waitFor()
  })

  test('splits progress by level', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [2, 3]))
    await workThrough(client, 2, { outcome: 'done' })
    const page = await visit(url)
    await page.getByRole('img', { name: 'level 0 100% done, level 1 0% done' }).waitFor()
    await page.getByRole('listitem').filter({ hasText: 'Level 1' }).getByText('300').waitFor()
  })

  test('shows for a done task which partitions never arrived', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [2]))
    await client.seal('orders', { partitions: 5 })
    await workThrough(client, 2, { outcome: 'done' })
    const page = await visit(url)
    const row = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'orders' }) })
    await row.getByText('Done', { exact: true }).waitFor()
    await row.getByText('3 missing', { exact: true }).waitFor()
  })

  test('filters by state and searches by name', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [1]))
    await client.callBack(partitionsOf('clicks', [1]))
    await client.pause('clicks')
    const page = await visit(url)
    const [orders, clicks] = [
      page.getByRole('link', { name: 'orders' }),
      page.getByRole('link', { name: 'clicks' }),
    ]
    await orders.waitFor()
    await page.getByRole('link', { name: /^Paused/ }).click()
    await orders.waitFor({ state: 'detached' })
    expect(await clicks.isVisible()).toBe(true)
    await page.getByRole('link', { name: 'All', exact: true }).click()
    await page.getByRole('searchbox').fill('ord')
    await clicks.waitFor({ state: 'detached' })
    expect(await orders.isVisible()).toBe(true)
    expect(page.url()).toContain('search=ord')
  })

  test('shows no throughput before it has one, and none for an idle task', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [8], 5000))
    await workThrough(client, 6, { outcome: 'done' })
    // The mean of a minute that is no longer current.
    expect((await client.task('orders')).recordsPerSecond).toBeGreaterThan(0)
    let heard: () => readonly string[] = () => []
    const prepare = async (page: Page) => {
      heard = await listenTo(page, '.figure.live')
    }
    const page = await visit(url, { prepare })
    await page.getByText('over the last seconds').waitFor()
    expect([...new Set(heard())]).toEqual([
      'Records per second – not read yet',
      'Records per second – being measured',
      'Records per second 0 over the last seconds',
    ])
  })

  test('does not report everything as done while partitions are parked or paused', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [12], 5000))
    await workThrough(client, 6, { outcome: 'done' })
    await workThrough(client, 1, { outcome: 'failed', reason: 'no', final: true })
    // A task with a leased partition is not idle, however long the page takes.
    await client.pull()
    await client.callBack(partitionsOf('clicks', [1]))
    await client.pause('clicks')
    const page = await visit(url)
    const eta = page.locator('.figure').filter({ hasText: 'Running tasks done in' })
    await eta.getByText('except 1 parked and 1 paused task').waitFor()
    expect(await page.getByText('All done in').count()).toBe(0)
    await page.getByText(/^the rest in \d/).waitFor()
    await page.getByRole('link', { name: 'orders' }).click()
    await page.getByText('The rest done in').waitFor()
    await page.getByText('except 1 parked').waitFor()
  })

  test('shows no numbers before the first answer', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [1]))
    let answer = () => {}
    const asked = new Promise<void>((resolve) => {
      answer = resolve
    })
    const prepare = async (page: Page) => {
      await page.route(/\/tasks\?/, async (request) => {
        await asked
        await request.continue()
      })
    }
    const page = await visit(url, { prepare })
    await page.getByText('Live', { exact: true }).waitFor()
    const figures = page.getByRole('region', { name: 'Totals' })
    expect(await figures.getByText('not read yet').count()).toBe(5)
    answer()
    await figures.getByText('of 100 in 1 unfinished task').waitFor()
  })

  test('counts the backlog of every task, regardless of the filter', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [1, 2]))
    await client.callBack(partitionsOf('clicks', [3]))
    const page = await visit(`${url}/#/?search=clicks`)
    const level = (name: string) => page.getByRole('listitem').filter({ hasText: name })
    await level('Level 0').getByText('400', { exact: true }).waitFor()
    await level('Level 1').getByText('200', { exact: true }).waitFor()
  })

  test('returns to the previous view', async () => {
    const { url, client } = await startService()
    for (let at = 10; at < 50; at += 1) await client.callBack(partitionsOf(`orders-${at}`, [1]))
    const page = await visit(url)
    await page.getByRole('link', { name: 'orders-12' }).click()
    await page.getByRole('heading', { name: 'orders-12' }).waitFor()
    expect(await page.evaluate('[scrollY, document.activeElement.id]')).toEqual([0, 'content'])
    await page.goBack()
    await page.getByRole('link', { name: 'orders-12' }).waitFor()
    await expect.poll(() => page.evaluate('scrollY')).toBeGreaterThan(500)
  })
})
