import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { workThrough } from '../../packages/client/test/support/work-through.ts'
import { partitionsOf, startService } from './support/service.ts'
import {
  accessibilityFaults,
  accessibilityFaultsOfKinds,
  contrastFaults,
  overflow,
  visit,
} from './support/visit.ts'

const PHONE = { width: 390, height: 844 }

const views = [
  { path: '/', ready: (page: Page) => page.getByRole('link', { name: 'parked-task' }).first().waitFor() },
  {
    path: '/#/tasks/orders',
    ready: (page: Page) => page.getByRole('rowheader', { name: 'orders-0-10' }).waitFor(),
  },
  {
    path: '/#/tasks/parked-task?state=parked',
    ready: (page: Page) => page.getByRole('button', { name: 'Retry parked-task-0-0' }).waitFor(),
  },
  { path: '/#/instances/browser-test', ready: (page: Page) => page.getByText('Partitions taken').waitFor() },
  {
    path: '/docs',
    ready: (page: Page) => page.getByRole('heading', { name: 'Worker', exact: true }).waitFor(),
  },
]

/** One task in every condition: done, leased, parked, paused, with a gap, with a mismatch. */
async function startBusyService() {
  const service = await startService('--level-barrier', 'true')
  const { client } = service
  await client.callBack(partitionsOf('parked-task', [2]))
  await workThrough(client, 2, { outcome: 'failed', reason: 'compute table is locked', final: true })
  await client.callBack(partitionsOf('orders', [40, 20, 10]).filter((_, index) => index !== 7))
  await workThrough(client, 9, { outcome: 'done', records: 99 })
  await client.pull({ batch: 3 })
  await client.callBack(partitionsOf('later', [5]))
  await client.pause('later')
  return service
}

/** The widths of a phone, a tablet and a desktop. Everything is checked on a phone. */
const WIDTHS = [
  [390, accessibilityFaults],
  [820, async () => []],
  [1440, accessibilityFaultsOfKinds],
] as const

test('the page has no overflow at any width, and no accessibility violation', async () => {
  const { url } = await startBusyService()
  const page = await visit(url)
  for (const { path, ready } of views) {
    await page.goto(url + path)
    for (const [width, faults] of WIDTHS) {
      await page.setViewportSize({ width, height: 900 })
      await ready(page)
      expect([path, width, await overflow(page), ...(await faults(page))]).toEqual([path, width, 0])
    }
  }
})

test('the page has enough contrast in dark, too', async () => {
  const { url } = await startBusyService()
  const page = await visit(url, { colorScheme: 'dark', viewport: PHONE })
  for (const { path, ready } of views) {
    await page.goto(url + path)
    await ready(page)
    expect([path, ...(await contrastFaults(page))]).toEqual([path])
  }
})

test.each([
  ['light', accessibilityFaults],
  ['dark', contrastFaults],
] as const)(
  'in %s the page has no fault without tasks, or while a dialog is open',
  async (colorScheme, faults) => {
    const { url, client } = await startService()
    const page = await visit(url, { colorScheme, viewport: PHONE })
    await page.getByRole('heading', { name: 'Baton is ready for its first task' }).waitFor()
    expect(await overflow(page)).toBe(0)
    expect(await faults(page)).toEqual([])
    await client.callBack(partitionsOf('orders', [1]))
    await page.getByRole('link', { name: 'orders' }).click()
    await page.getByRole('button', { name: 'Cancel task…' }).click()
    await page.getByRole('dialog').waitFor()
    expect(await faults(page)).toEqual([])
  },
)

test('the colour scheme of the browser is followed', async () => {
  const { url } = await startService()
  const brightness = async (colorScheme: 'light' | 'dark') => {
    const page = await visit(url, { colorScheme })
    const colour = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    return Number(/\d+/.exec(String(colour))?.[0])
  }
  expect(await brightness('light')).toBeGreaterThan(200)
  expect(await brightness('dark')).toBeLessThan(50)
})

test('no animation runs forever, so an open page costs nothing', async () => {
  const { url } = await startBusyService()
  const page = await visit(url, { reducedMotion: 'no-preference' })
  await views[0]?.ready(page)
  await page.locator('.live-state.live').waitFor()
  // What stands in for data that is on its way moves until it is there.
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  const endless = await page.evaluate(
    'document.getAnimations().filter(({ effect }) => effect.getComputedTiming().iterations === Infinity).length',
  )
  expect(endless).toBe(0)
})

test('everything can be reached with a keyboard', async () => {
  const { url, client } = await startService()
  await client.callBack(partitionsOf('orders', [1]))
  const page = await visit(url)
  await page.getByRole('link', { name: 'orders' }).waitFor()
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to content')
  await page.keyboard.press('Enter')
  expect(await page.evaluate('document.activeElement.id')).toBe('content')
  await page.getByRole('link', { name: 'orders' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'orders' }).waitFor()
})
