import { BatonClient } from '@baton/client'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { tokenNamed, tokensFile } from '../support/tokens-file.ts'
import { partitionsOf, startService } from './support/service.ts'
import { accessibilityFaults, contrastFaults, overflow, visit } from './support/visit.ts'

const GOOD = ['loader-1', 'loader-2', 'loader-3', 'loader-4']

/**
 * One task is stalled, one is paused by a person, one has a table that no worker asks for, and one of the workers
 * fails most of its attempts and holds two leases.
 */
async function badNight(): Promise<string> {
  const roles = { compute: 'producer', loader: 'worker', 'night-ops': 'operator' } as const
  const tokens = Object.entries(roles).map(([name, role]) => ({
    name,
    token: tokenNamed(role),
    roles: [role],
  }))
  const { url } = await startService('--tokens-file', await tokensFile({ tokens }))
  const producer = new BatonClient({ url, token: tokenNamed('producer') })
  const operator = new BatonClient({ url, token: tokenNamed('operator') })
  await producer.callBack(partitionsOf('ledger', [2]))
  await producer.callBack(partitionsOf('orders', [40, 8]))
  const refunds = partitionsOf('refunds', [3])
  await producer.callBack(refunds.map((one) => ({ ...one, computeTableName: 'results.refunds' })))
  const work = async (worker: string, task: string, batch: number, failing: number, held = 0) => {
    const client = new BatonClient({ url, token: tokenNamed('worker'), instanceId: worker })
    const { partitions } = await client.pull({ batch, tasks: [task] })
    await client.settle(
      partitions.slice(held).map(({ lease }, at) => ({
        leaseId: lease?.id ?? '',
        ...(at < failing
          ? { outcome: 'failed', reason: 'no space left on disk', final: true }
          : { outcome: 'done' }),
      })),
    )
  }
  await work('bad-host', 'ledger', 2, 1)
  await work('bad-host', 'orders', 8, 4, 2)
  for (const worker of GOOD) await work(worker, 'orders', 6, 0)
  const inventory = partitionsOf('inventory', [4])
  await producer.callBack(inventory.map((one) => ({ ...one, computeTableName: 'results.inventory' })))
  await operator.pause('inventory')
  return url
}

/** Nothing is wider than the window, and no one is shut out, in both colour schemes. */
async function expectFit(page: Page): Promise<void> {
  expect([page.url(), await overflow(page)]).toEqual([page.url(), 0])
  for (const [colorScheme, faults] of [
    ['light', accessibilityFaults],
    ['dark', contrastFaults],
  ] as const) {
    await page.emulateMedia({ colorScheme })
    expect([page.url(), colorScheme, ...(await faults(page))]).toEqual([page.url(), colorScheme])
  }
}

test.each([1440, 390])('each question of a bad night is answered by clicking, at %i px', async (width) => {
  const url = await badNight()
  const page = await visit(url, { viewport: { width, height: 900 } })
  const section = (name: string) =>
    page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
  const finding = (name: string | RegExp) => page.getByRole('region', { name })

  // Who am I?
  await page.getByLabel('Token').fill(tokenNamed('operator'))
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('night-ops').first().waitFor()

  // Does nobody pull this table? Work of a paused task does not wait for workers.
  const unasked = finding('Work waits that no worker asks for')
  await unasked.getByText('results.refunds').waitFor()
  await expect.poll(() => unasked.getByText('results.inventory').count()).toBe(0)
  await unasked.getByRole('link', { name: 'See tables' }).click()
  await page.getByRole('row').filter({ hasText: 'results.refunds' }).waitFor()
  await section('Overview')
  // Since when is throughput down?
  await page.getByLabel('Time').selectOption('24h')
  await page.getByRole('img', { name: /^Records done per minute over/ }).waitFor()
  expect(page.url()).toContain('span=24h')
  await expectFit(page)
  await page.getByRole('link', { name: 'refunds', exact: true }).click()
  await finding('Nobody pulls results.refunds').waitFor()
  await section('Overview')

  // Why is it stalled?
  await page.getByRole('link', { name: /^Stalled/ }).click()
  await page.getByRole('link', { name: 'ledger', exact: true }).click()
  await page.getByRole('list', { name: 'Failures by reason' }).getByText('no space left on disk').waitFor()
  await page
    .getByRole('button', { name: /^ledger-0-\d$/ })
    .first()
    .waitFor()
  await expectFit(page)

  // Who paused this, and when? Which settings does it have?
  await section('Overview')
  await page.getByRole('link', { name: /^Paused/ }).click()
  await page.getByRole('link', { name: 'inventory', exact: true }).click()
  await finding('The task is paused')
    .getByText(/^night-ops paused it/)
    .waitFor()
  await page.getByText('5 attempts', { exact: true }).waitFor()
  await page.getByRole('list', { name: 'What happened' }).getByText('night-ops').waitFor()

  // Where is a partition, and what happened to it?
  await section('Overview')
  const search = page.getByRole('searchbox', { name: 'Search tasks by name' })
  await search.waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('orders-0-9')
  await page.getByRole('link', { name: 'find it in orders' }).click()
  await page.getByRole('button', { name: 'orders-0-9', exact: true }).click()
  const attempts = page.getByRole('list', { name: 'Attempts' })
  await attempts.getByRole('link', { name: /^loader-\d$/ }).waitFor()
  expect(await attempts.evaluate((list) => list.scrollWidth - list.clientWidth)).toBe(0)
  await expectFit(page)

  // What does a reason affect, and what does a worker hold of this task?
  await page.getByRole('combobox', { name: 'Reason' }).selectOption({ label: 'no space left on disk' })
  const rows = page.getByRole('rowheader', { name: /^orders-0-/ })
  await expect.poll(() => rows.count(), { timeout: 30_000 }).toBe(4)
  const holder = page.getByLabel('Partitions held by this worker')
  await holder.fill('bad-host')
  await holder.press('Enter')
  await page.getByRole('link', { name: 'Remove the filter held by bad-host' }).waitFor()
  await page
    .getByRole('rowheader', { name: /^orders-0-/ })
    .nth(1)
    .waitFor()
  expect(page.url()).toContain('holder=bad-host')

  // Which of the workers is bad, and what does it hold?
  await section('Instances')
  await finding(/fails far more often/)
    .getByRole('link', { name: 'bad-host' })
    .waitFor()
  await expectFit(page)
  await page.getByRole('rowheader').first().getByRole('link', { name: 'bad-host' }).waitFor()
  const instances = page.getByRole('searchbox', { name: 'Search instances by name' })
  const workers = page.getByRole('region', { name: 'Rows of workers' })
  await instances.fill('loader-3')
  await workers.getByRole('link', { name: 'bad-host' }).waitFor({ state: 'detached' })
  expect(page.url()).toContain('search=loader-3')
  await instances.fill('')
  await workers.getByRole('link', { name: 'bad-host' }).click()
  await page.getByText(/% of 8 failed or expired/).waitFor()
  await page.getByRole('button', { name: 'Pause' }).click()
  await finding('The instance is paused').waitFor()
  await page
    .getByRole('button', { name: /^Release the lease of orders-0-/ })
    .first()
    .click()
  await page.getByRole('dialog').getByRole('button', { name: 'Release this lease' }).click()
  await page.getByText('It holds 1 lease').waitFor()
  await expectFit(page)

  // Which node leads?
  await section('Instances')
  const nodes = finding('Nodes')
  await nodes.getByText('leader, version').waitFor()
  await nodes.getByRole('link').click()
  await page.getByText('Leader', { exact: true }).waitFor()
  await expectFit(page)

  // Is the table at its limit?
  await section('Tables')
  await page.getByRole('button', { name: 'Edit results.orders' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Most leases at a time').fill('1')
  await expectFit(page)
  await dialog.getByRole('button', { name: 'Save' }).click()
  const row = page.getByRole('row').filter({ hasText: 'results.orders' })
  await row.getByText('at its limit').waitFor()
  await page.getByRole('button', { name: 'Edit results.orders' }).click()
  await dialog.getByLabel(/^Paused/).check()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await row.getByText('paused', { exact: true }).waitFor()
  const button = await row.getByRole('button').boundingBox()
  expect((button?.x ?? width) + (button?.width ?? 0)).toBeLessThan(width)
  await expectFit(page)

  // Why does its work wait?
  await section('Overview')
  await page.getByRole('link', { name: 'orders', exact: true }).click()
  await finding('The table results.orders is paused').waitFor()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
})
