import { BatonClient, Worker } from '@baton/client'
import { checkCallBack } from '@baton/protocol'
import { describe, expect, onTestFinished, test } from 'vitest'
import { partitionsOf, startService, workThrough } from './support/service.ts'
import { visiting } from './support/visit.ts'

const visit = visiting()

describe('the overview', () => {
  test('shows whoever comes first how to call back, in words that work', async () => {
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

    // The workers go on when the test says so: no clock decides what the page must show.
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
})
