import type { Page } from 'playwright-core'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { workThrough } from '../../packages/client/test/support/work-through.ts'
import { Receiver } from '../../packages/server/test/webhooks/support/receiver.ts'
import { tokenNamed, tokensFile } from '../support/tokens-file.ts'
import { until } from '../support/until.ts'
import { partitionsOf, type RunningService, startService } from './support/service.ts'
import { accessibilityFaults, overflow, visit } from './support/visit.ts'

const start = () => startService('--webhook-networks', '127.0.0.0/8', '--webhook-backoff-seconds', '0.01')

async function finish({ client }: RunningService, taskId: string): Promise<void> {
  await client.callBack(partitionsOf(taskId, [1]))
  await workThrough(client, 1, { outcome: 'done' })
}

/** Reads the secret in the open dialog and closes the dialog. */
async function secretShown(page: Page, title: string): Promise<string> {
  const dialog = page.getByRole('dialog', { name: title })
  const secret = await dialog.getByRole('region', { name: 'Secret' }).innerText()
  await dialog.getByRole('button', { name: 'Done' }).click()
  await dialog.waitFor({ state: 'detached' })
  return secret.trim()
}

describe('webhooks', () => {
  test('are created, rotated, resent and deleted on the page', async () => {
    const service = await start()
    const receiver = await Receiver.start()
    const page = await visit(service.url)
    await page.getByRole('link', { name: 'Webhooks' }).click()
    await page.getByText('No webhooks yet.').waitFor()
    await page.getByRole('button', { name: 'New subscription…' }).click()
    const form = page.getByRole('dialog', { name: 'New subscription' })
    expect(await accessibilityFaults(page)).toEqual([])
    await form.getByLabel('URL').fill('http://10.0.0.1/hooks')
    await form.getByRole('button', { name: 'Subscribe' }).click()
    await form.getByRole('alert').getByText('is not on the public internet').waitFor()
    await form.getByLabel('URL').fill(receiver.url)
    for (const type of ['task.stalled', 'task.cancelled', 'task.paused', 'level.done', 'partition.parked'])
      await form.getByLabel(type).uncheck()
    await form.getByLabel('Task id prefix').fill('orders-')
    await form.getByRole('button', { name: 'Subscribe' }).click()
    const first = await secretShown(page, 'The webhook is set up')

    await finish(service, 'orders-1')
    await finish(service, 'reports-1')
    await page.getByRole('link', { name: receiver.url }).click()
    const log = page.getByRole('region', { name: 'Deliveries', exact: true })
    await log.getByText('Delivered', { exact: true }).waitFor()
    expect(await log.getByRole('link').allInnerTexts()).toEqual(['orders-1'])
    receiver.expectSigned(first)

    await page.getByRole('button', { name: 'Rotate secret…' }).click()
    await page.getByRole('button', { name: 'Create a new secret' }).click()
    const second = await secretShown(page, 'The new secret')
    await page.getByText(second).waitFor({ state: 'detached' })
    await log.getByRole('button', { name: /Send again: event \d+/ }).click()
    const [, again] = await until(() => (receiver.taken.length === 2 ? receiver.taken : undefined))
    for (const secret of [first, second])
      new Webhook(secret).verify(again?.text ?? '', again?.headers as Record<string, string>)

    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No webhooks yet.').waitFor()
    expect(await service.client.subscriptions.list()).toEqual([])
  })

  test.each([
    { colorScheme: 'light', width: 390 },
    { colorScheme: 'dark', width: 1280 },
  ] as const)('show in $colorScheme, $width wide, why events do not arrive', async (look) => {
    const { colorScheme, width } = look
    const service = await start()
    const gone = await Receiver.start(() => 410)
    const down = await Receiver.start()
    await down.down()
    for (const { url } of [gone, down]) await service.client.subscriptions.create({ url })
    for (const task of ['a', 'b', 'c']) await finish(service, task)
    const page = await visit(`${service.url}/#/webhooks`, { colorScheme, viewport: { width, height: 800 } })
    const row = page.getByRole('row').filter({ hasText: down.url })
    await row.getByText('Failing').waitFor()
    await row
      .getByText(/^(?:6|all events, 6 pending)$/)
      .filter({ visible: true })
      .waitFor()
    await page.getByRole('row').filter({ hasText: gone.url }).getByText('Disabled').waitFor()
    expect([await overflow(page), ...(await accessibilityFaults(page))]).toEqual([0])

    await page.getByRole('link', { name: down.url }).click()
    await page.getByText('The receiver is failing').waitFor()
    await page
      .getByText(/ECONNREFUSED/)
      .filter({ visible: true })
      .first()
      .waitFor()
    expect([await overflow(page), ...(await accessibilityFaults(page))]).toEqual([0])
    await page.goBack()

    await page.getByRole('link', { name: gone.url }).click()
    await page.getByText('the receiver answered 410 Gone').waitFor()
    gone.behave = () => 204
    await page.getByRole('button', { name: 'Enable' }).click()
    await page.getByText('Active', { exact: true }).waitFor()
    await finish(service, 'd')
    await until(() => gone.firstTaken.some(({ subject }) => subject === 'd'))
  })

  test('can be changed by operators only', async () => {
    const tokens = ['viewer', 'operator'].map((role) => ({
      name: role,
      token: tokenNamed(role),
      roles: [role],
    }))
    const { url } = await startService('--tokens-file', await tokensFile({ tokens }))
    const page = await visit(`${url}/#/webhooks`, { viewport: { width: 390, height: 800 } })
    const give = async (role: string) => {
      await page.getByLabel('Token').fill(tokenNamed(role))
      await page.keyboard.press('Enter')
    }
    await give('viewer')
    await page.getByText('Changing webhooks requires a token with the role operator').waitFor()
    expect(await page.getByRole('button', { name: 'New subscription…' }).count()).toBe(0)
    expect(await overflow(page)).toBe(0)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await give('operator')
    await page.getByRole('button', { name: 'New subscription…' }).click()
    await page.getByLabel('URL').fill('https://receiver.invalid/')
    await page.getByRole('button', { name: 'Subscribe' }).click()
    await secretShown(page, 'The webhook is set up')
    await page.getByRole('link', { name: 'https://receiver.invalid/' }).waitFor()
  })
})
