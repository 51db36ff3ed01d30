import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { workThrough } from '../../packages/client/test/support/work-through.ts'
import { partitionsOf, startService } from './support/service.ts'
import { accessibilityFaults, overflow, visit } from './support/visit.ts'

describe('an operator', () => {
  test('pauses a task and resumes it', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [3]))
    const page = await visit(`${url}/#/tasks/orders`)
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    expect((await client.pull()).partitions).toEqual([])
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    expect((await client.pull()).partitions).toHaveLength(1)
  })

  test('sees why a partition is parked, and retries it', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [2]))
    await workThrough(client, 1, { outcome: 'failed', reason: 'compute table is locked', final: true })
    const page = await visit(url)
    await page.getByRole('link', { name: '1 parked' }).click()
    const row = page.getByRole('row').filter({ hasText: 'orders-0-0' })
    await row.getByRole('cell', { name: 'compute table is locked' }).waitFor()
    await row.getByRole('button', { name: 'Retry orders-0-0' }).click()
    await page.getByText('No partition is parked.').waitFor()
    expect(await client.task('orders')).toMatchObject({ state: 'open', partitions: { parked: 0, ready: 2 } })
  })

  test('sees for which reasons partitions are parked, and retries those of one', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [3]))
    await workThrough(client, 2, { outcome: 'failed', reason: 'locked by 7', final: true })
    await workThrough(client, 1, { outcome: 'failed', reason: 'no such column', final: true })
    const page = await visit(`${url}/#/tasks/orders`)
    const reasons = page.getByRole('list', { name: 'Why they are parked' })
    const locked = reasons.getByRole('listitem').filter({ hasText: 'locked by #' })
    await locked.getByRole('button', { name: 'Retry these 2, ' }).click()
    await page.getByText('2 partitions retried').waitFor()
    await locked.waitFor({ state: 'detached' })
    await reasons.getByText('no such column').waitFor()
    expect(await client.task('orders')).toMatchObject({ partitions: { parked: 1, ready: 2 } })
  })

  test('has to confirm before a task is cancelled, and can decline', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [4]))
    await workThrough(client, 1, { outcome: 'done' })
    const page = await visit(`${url}/#/tasks/orders`)
    const dialog = page.getByRole('dialog', { name: 'Cancel this task?' })
    await page.getByRole('button', { name: 'Cancel task…' }).click()
    await dialog.waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    expect((await client.task('orders')).state).toBe('open')
    await page.getByRole('button', { name: 'Cancel task…' }).click()
    await dialog.getByRole('button', { name: 'Cancel 3 partitions' }).click()
    await page.getByText('Cancelled', { exact: true }).first().waitFor()
    expect(await client.task('orders')).toMatchObject({
      state: 'cancelled',
      partitions: { done: 1, cancelled: 3 },
    })
  })

  test('seals a task with the expected number of partitions, after an error for what cannot be one', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [2]))
    const page = await visit(`${url}/#/tasks/orders`)
    await page.getByRole('button', { name: 'Seal…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Seal this task?' })
    await dialog.getByRole('textbox').fill('1,000')
    await page.keyboard.press('Enter')
    await dialog.getByRole('alert').getByText('must be digits').waitFor()
    expect((await client.task('orders')).sealed).toBe(false)
    // The dialog, which covers the page, also shows the service's message.
    await dialog.getByRole('textbox').fill('1')
    await page.keyboard.press('Enter')
    await dialog.getByRole('alert').getByText('2').waitFor()
    await dialog.getByRole('textbox').fill('3')
    await page.keyboard.press('Enter')
    await page.getByText('1 partition is missing').waitFor()
    expect(await client.task('orders')).toMatchObject({ sealed: true, expectedPartitions: 3 })
  })

  test('keeps the focus when an action changes the buttons', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [3]))
    await workThrough(client, 2, { outcome: 'failed', reason: 'no', final: true })
    const page = await visit(`${url}/#/tasks/orders`)
    const focused = () => page.evaluate('document.activeElement.textContent')
    await page.getByRole('button', { name: 'Pause' }).press('Enter')
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    expect(await focused()).toBe('Resume')
    await page.getByRole('button', { name: 'Retry orders-0-0' }).press('Enter')
    await page.getByRole('button', { name: 'Retry orders-0-0' }).waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Rows of partitions')
    await page.getByRole('button', { name: 'Retry all parked' }).press('Enter')
    await page.getByRole('button', { name: 'Retry all parked' }).waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.id')).toBe('content')
  })

  test('sees gaps and mismatched counts', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [5]).filter((_, index) => index !== 2 && index !== 3))
    await workThrough(client, 1, { outcome: 'done', records: 90 })
    const page = await visit(`${url}/#/tasks/orders`)
    await page.getByText('Level 0: 2–3 (2 missing)').waitFor()
    await page.getByText('Workers reported 10 records fewer than were declared').click()
    await page.getByRole('cell', { name: '−10' }).waitFor()
  })

  test('lets the barrier ignore parked partitions', async () => {
    const { url, client } = await startService('--level-barrier', 'true')
    await client.callBack(partitionsOf('orders', [1, 2]))
    await workThrough(client, 1, { outcome: 'failed', reason: 'no', final: true })
    const page = await visit(`${url}/#/tasks/orders`)
    const finding = page.getByRole('region', { name: 'Levels above 0 wait' })
    await finding.getByText('1 partition to go, and it is parked.').waitFor()
    await page.getByText('higher levels wait for 1 parked').waitFor()
    await finding.getByRole('button', { name: 'Skip parked…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Continue without the parked partitions?' })
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Skip 1 partition' }).click()
    await finding.waitFor({ state: 'detached' })
    expect((await client.pull({ batch: 5 })).partitions).toHaveLength(2)
  })

  test('turns the level barrier on and off', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [1, 1]))
    const page = await visit(`${url}/#/tasks/orders`, { viewport: { width: 390, height: 844 } })
    const more = page.locator('summary').filter({ hasText: 'More' })
    await more.press('Enter')
    expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Enable the level barrier' }).waitFor({ state: 'hidden' })
    await more.click()
    await page.getByRole('button', { name: 'Enable the level barrier' }).click()
    await page.getByRole('region', { name: 'Levels above 0 wait' }).waitFor()
    expect((await client.task('orders')).levelBarrier).toBe(true)
    await more.click()
    await page.getByRole('button', { name: 'Disable the level barrier' }).click()
    await page.getByRole('region', { name: 'Levels above 0 wait' }).waitFor({ state: 'detached' })
  })

  test('reruns done partitions, of one level or of the whole task', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [2, 3]))
    await workThrough(client, 5, { outcome: 'done' })
    const page = await visit(`${url}/#/tasks/orders`)
    await page.getByText('from first to last, on average').waitFor()
    await page.locator('summary').filter({ hasText: 'More' }).click()
    await page.getByRole('button', { name: 'Run done partitions again…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Run done partitions again?' })
    await dialog.getByRole('button', { name: 'Run 5 partitions again' }).waitFor()
    await dialog.getByRole('combobox').selectOption('1')
    await dialog.getByRole('button', { name: 'Run 3 partitions again' }).click()
    await page.getByText('3 partitions run again').waitFor()
    expect(await client.task('orders')).toMatchObject({ state: 'open', partitions: { done: 2, ready: 3 } })
  })

  test('downloads the manifest', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders/2026', [3]))
    const page = await visit(`${url}/#/tasks/${encodeURIComponent('orders/2026')}`)
    await page.locator('summary').filter({ hasText: 'More' }).click()
    const coming = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Download the manifest' }).click()
    const download = await coming
    expect(download.suggestedFilename()).toBe('orders_2026.ndjson')
    const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\n')
    expect(lines).toHaveLength(3)
  })

  test.each([390, 1280])('can read a complete reason on a screen of %i pixels', async (width) => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [300]))
    const reason = `Traceback:\n  ${'in load, '.repeat(60)}\nKeyError: 'price'\n\n`
    await workThrough(client, 1, { outcome: 'failed', reason, final: true })
    const page = await visit(`${url}/#/tasks/orders`, { viewport: { width, height: 800 } })
    const toggle = page.getByRole('button', { name: 'orders-0-0', exact: true })
    await toggle.waitFor()
    expect(await toggle.getAttribute('aria-expanded')).toBe('false')
    const line = page.locator('.reason-line:visible', { hasText: "KeyError: 'price'" })
    expect((await line.boundingBox())?.width).toBeGreaterThan(80)
    await toggle.press('Enter')
    expect(await toggle.getAttribute('aria-expanded')).toBe('true')
    await page.locator('pre', { hasText: 'Traceback:' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    // The expanded row has as many columns as the others.
    const [table, row] = await Promise.all(
      [page.locator('.partitions table'), page.getByRole('row').filter({ has: toggle })].map((one) =>
        one.boundingBox(),
      ),
    )
    expect(row?.width).toBe(table?.width)
    const list = page.getByRole('region', { name: 'Rows of partitions' })
    // Expanded content takes its height also above the visible rows.
    while ((await list.getByRole('rowheader', { name: 'orders-0-299' }).count()) === 0)
      await list.press('End')
    await list.press('End')
    await list.getByRole('rowheader', { name: 'orders-0-299' }).waitFor()
    await list.press('Home')
    await page.locator('pre', { hasText: 'Traceback:' }).waitFor()
    await toggle.click()
    await page.locator('pre', { hasText: 'Traceback:' }).waitFor({ state: 'detached' })
  })
})
