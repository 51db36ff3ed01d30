import { describe, expect, test } from 'vitest'
import { workThrough } from '../../packages/client/test/support/work-through.ts'
import { partitionsOf, startService } from './support/service.ts'
import { visit } from './support/visit.ts'

describe('a link', () => {
  test('shows another person the same view', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders/2026 03', [2, 3]))
    await workThrough(client, 1, { outcome: 'done' })
    const mine = await visit(url)
    await mine.getByRole('link', { name: 'orders/2026 03' }).click()
    await mine.getByRole('combobox', { name: 'State' }).selectOption('ready')
    await mine.getByRole('combobox', { name: 'Level' }).selectOption('1')
    await mine.getByText('3 partitions', { exact: true }).waitFor()
    const theirs = await visit(mine.url())
    await theirs.getByText('3 partitions', { exact: true }).waitFor()
    await theirs.getByRole('rowheader', { name: 'orders/2026 03-1-2' }).waitFor()
    expect(await theirs.getByRole('combobox', { name: 'State' }).inputValue()).toBe('ready')
    expect(await theirs.getByRole('combobox', { name: 'Level' }).inputValue()).toBe('1')
    expect(await theirs.title()).toBe('orders/2026 03 · Baton')
  })

  test('works below a base path, and so does the link back', async () => {
    const { url, client } = await startService('--base-path', '/data/baton')
    await client.callBack(partitionsOf('orders', [1]))
    const page = await visit(url)
    expect(page.url()).toBe(`${url}/`)
    await page.getByRole('link', { name: 'orders' }).click()
    await page.getByRole('heading', { name: 'orders' }).waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'Tasks', exact: true }).waitFor()
    await page.getByRole('link', { name: 'API' }).click()
    await page.getByRole('heading', { name: 'API reference' }).waitFor()
    expect(page.url()).toBe(`${url}/docs`)
    await page.getByText(`curl ${url}/livez`).waitFor()
  })

  test('shows the schema of an answer in the API reference, including named schemas', async () => {
    const { url } = await startService()
    const page = await visit(`${url}/docs`)
    const fields = page.locator('#pull').getByRole('table', { name: 'Fields' })
    for (const field of ['partitions', 'record_count', 'lease', 'expiresAt'])
      await fields.getByRole('rowheader', { name: field, exact: true }).waitFor()
  })

  test('that leads nowhere shows an error', async () => {
    const { url } = await startService()
    const page = await visit(url)
    for (const [fragment, words] of [
      ['#/tasks/nobody', 'No task with this id was called back.'],
      ['#/instances/nobody', 'No instance has this name.'],
      ['#/elsewhere/x', 'This link does not lead to a task, an instance or a webhook.'],
    ] as const) {
      await page.goto(`${url}/${fragment}`)
      await page.getByText(words).waitFor()
    }
  })
})
