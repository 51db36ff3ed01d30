import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { workThrough } from '../../packages/client/test/support/work-through.ts'
import { partitionsOf, startService } from './support/service.ts'
import { accessibilityFaults, overflow, visit } from './support/visit.ts'

/** Two levels: one is done but for a parked partition, of the other one partition is leased. */
async function troubledTask() {
  const service = await startService(
    '--log-url',
    'https://logs.example/{holder}?task={task}&partition={partition}&attempt={attempt}',
    '--unknown-fields',
    'keep',
  )
  const { client, url } = service
  const [bad, ...others] = partitionsOf('orders', [30, 8])
  if (bad === undefined) throw new Error('partitions were expected')
  await client.callBack([{ ...bad, shard: 'eu-7' } as typeof bad, ...others])
  const worker = new BatonClient({ url, instanceId: 'loader-1' })
  await workThrough(worker, 1, { outcome: 'failed', reason: 'no such table', final: true })
  await workThrough(worker, 29, { outcome: 'done' })
  await worker.pull()
  return service
}

describe('a task at a glance', () => {
  test.each([
    { width: 1440, colorScheme: 'light' },
    { width: 390, colorScheme: 'dark' },
  ] as const)(
    'at $width px, a cell of the grid leads to its partition, its attempts and its log',
    async (look) => {
      const { url } = await troubledTask()
      const { width, colorScheme } = look
      const page = await visit(`${url}/#/tasks/orders`, { colorScheme, viewport: { width, height: 900 } })
      const grid = page.getByRole('img', { name: 'Level 0: 1 parked, 29 done' })
      await grid.locator('i').nth(29).waitFor()
      await grid.locator('.fill-parked').click()
      expect(page.url()).toContain('level=0&indexes=0-0')
      const list = page.getByRole('region', { name: 'Rows of partitions' })
      await list.getByRole('rowheader', { name: 'orders-0-2' }).first().waitFor({ state: 'detached' })
      await list.getByRole('button', { name: 'orders-0-0', exact: true }).click()
      const attempts = list.getByRole('list', { name: 'Attempts' })
      await attempts.getByText('no such table').waitFor()
      expect(await attempts.getByRole('link', { name: 'Log' }).getAttribute('href')).toBe(
        'https://logs.example/loader-1?task=orders&partition=orders-0-0&attempt=1',
      )
      await list.getByText('eu-7').waitFor()
      expect(await accessibilityFaults(page)).toEqual([])
      expect(await overflow(page)).toBe(0)
      await page.getByRole('link', { name: 'Remove the filter index 0' }).click()
      await list.getByRole('rowheader', { name: 'orders-0-1', exact: false }).first().waitFor()
    },
  )

  test('a partition is found by its name, with a key for the search and a link to share', async () => {
    const { url } = await troubledTask()
    const page = await visit(`${url}/#/tasks/orders`)
    await page.getByRole('rowheader', { name: 'orders-0-0' }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByText('search on this page').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('/')
    await page.keyboard.type('orders-1-7')
    await page.getByRole('rowheader', { name: 'orders-1-7' }).waitFor()
    const theirs = await visit(page.url())
    await theirs.getByRole('rowheader', { name: 'orders-1-7' }).waitFor()
    expect(await theirs.getByRole('rowheader').filter({ hasText: 'orders-0' }).count()).toBe(0)
  })

  test('says who paused it and when, which settings it has, and what happened', async () => {
    const { url, client } = await troubledTask()
    const page = await visit(`${url}/#/tasks/orders`, { viewport: { width: 390, height: 900 } })
    await page.getByRole('button', { name: 'Pause' }).click()
    await page
      .getByRole('region', { name: 'The task is paused' })
      .getByText(/^Someone without a token paused it .* handed out/)
      .waitFor()
    await page.getByRole('button', { name: 'Edit settings' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Attempts').fill('many')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('Attempts must be a number').waitFor()
    await dialog.getByLabel('Attempts').fill('9')
    const pause = dialog.getByLabel('Pause after failures')
    await pause.fill('half')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText(/must be a share and a number of attempts/).waitFor()
    await pause.fill('0.5/1001')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText(/at most 1,?000/).waitFor()
    await pause.fill('0.5/20')
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('9 attempts', { exact: true }).waitFor()
    await page.getByText('pauses if 50% of 20 attempts fail').waitFor()
    expect((await client.settings('orders')).settings).toMatchObject({
      maxAttempts: 9,
      pauseAfterFailures: { share: 0.5, of: 20 },
      own: ['maxAttempts', 'pauseAfterFailures'],
    })
    const feed = page.getByRole('list', { name: 'What happened' })
    for (const words of ['Paused', 'Settings changed', 'Called back for the first time'])
      await feed.getByText(words).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    expect(await overflow(page)).toBe(0)
  })
})
