import { BatonClient } from '@baton/client'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { tokenNamed, tokensFile as writtenFile } from '../support/tokens-file.ts'
import { partitionsOf, type RunningService, startService, startServiceToTakeAway } from './support/service.ts'
import { accessibilityFaults, listenTo, unreachable, visit } from './support/visit.ts'

async function tokensFile(...names: string[]): Promise<string> {
  const tokens = [
    { name: 'compute', token: tokenNamed('producer'), roles: ['producer'] },
    { name: 'wall', token: tokenNamed('viewer'), roles: ['viewer'] },
    { name: 'oncall', token: tokenNamed('operator'), roles: ['operator'] },
  ]
  return writtenFile({ tokens: tokens.filter(({ name }) => names.includes(name)) })
}

async function guarded<Service extends RunningService>(
  start: (...flags: string[]) => Promise<Service>,
): Promise<Service> {
  const service = await start('--tokens-file', await tokensFile('compute', 'wall', 'oncall'))
  await new BatonClient({ url: service.url, token: tokenNamed('producer') }).callBack(
    partitionsOf('orders', [1]),
  )
  return service
}

async function give(page: Page, token: string): Promise<void> {
  await page.getByLabel('Token').fill(token)
  await page.keyboard.press('Enter')
}

describe('a service that requires tokens', () => {
  test('the page prompts for a token, rejects a wrong one, and keeps it for the tab', async () => {
    const { url } = await guarded(startService)
    const page = await visit(url)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await give(page, 'no-such-token')
    await page.getByRole('alert').getByText('The service does not know this token.').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await give(page, tokenNamed('operator'))
    await page.getByRole('link', { name: 'orders' }).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await page.reload()
    await page.getByRole('link', { name: 'orders' }).click()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    expect(await page.evaluate('[localStorage.length, document.cookie]')).toEqual([0, ''])
  })

  test('an operator sees who called a task back and who changed it; a viewer is not offered the audit', async () => {
    const { url } = await guarded(startService)
    const page = await visit(url)
    await give(page, tokenNamed('operator'))
    await page.getByRole('link', { name: 'orders' }).click()
    await page.getByText(', by compute').waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    await page.getByRole('link', { name: 'Overview' }).first().click()
    await page.getByRole('button', { name: 'Show audit' }).click()
    const entries = page.getByRole('list', { name: 'Audit entries' })
    await entries.getByText('oncall pause orders').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await page.evaluate('sessionStorage.length')).toBe(0)
    await give(page, tokenNamed('viewer'))
    await page.getByText('Live', { exact: true }).waitFor()
    expect(await page.getByRole('button', { name: 'Show audit' }).count()).toBe(0)
  })

  test('a missing token is never shown as a lost connection', async () => {
    const { url } = await guarded(startService)
    let heard: () => readonly string[] = () => []
    const prepare = async (page: Page) => {
      heard = await listenTo(page, '.live-state')
    }
    const page = await visit(url, { prepare })
    await page.getByText('Token needed', { exact: true }).waitFor()
    await give(page, 'no-such-token')
    await page.getByText('The service does not know this token.').waitFor()
    await give(page, 'two words')
    await page.getByText('The service does not know this token.').waitFor()
    await give(page, tokenNamed('producer'))
    await page.getByText('The role of this token does not allow viewing').waitFor()
    await give(page, tokenNamed('viewer'))
    await page.getByText('Live', { exact: true }).waitFor()
    expect(new Set(heard())).toEqual(new Set(['Connecting', 'Token needed', 'Live']))
  })

  test('a service that stops meanwhile is shown as unavailable, and the token is tried when it is back', async () => {
    const { url, stop, restart } = await guarded(startServiceToTakeAway)
    const page = await visit(url, { expected: unreachable })
    await page.getByText('Token needed', { exact: true }).waitFor()
    await stop()
    await page.getByText('Connection lost, retrying').waitFor()
    await give(page, tokenNamed('viewer'))
    await page.getByRole('alert').getByText('The token could not be checked.').waitFor()
    await restart('--tokens-file', await tokensFile('wall'))
    await page.getByText('Token needed', { exact: true }).waitFor()
    await page.getByLabel('Token').press('Enter')
    await page.getByRole('link', { name: 'orders' }).waitFor()
  })

  test('the page prompts again when a token is revoked', async () => {
    const { url, restart } = await guarded(startServiceToTakeAway)
    const page = await visit(`${url}/#/tasks/orders`, { expected: unreachable })
    await give(page, tokenNamed('operator'))
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    await restart('--tokens-file', await tokensFile('wall'))
    await page.getByText('The service does not know this token.').waitFor()
    await page.getByText('Token needed', { exact: true }).waitFor()
    await give(page, tokenNamed('viewer'))
    await page.getByText('This token can only view').waitFor()
  })

  test('the API reference accepts a token of any role', async () => {
    const { url } = await guarded(startService)
    const page = await visit(`${url}/docs`)
    await give(page, 'no-such-token')
    await page.getByText('The service does not know this token.').waitFor()
    await give(page, tokenNamed('producer'))
    await page.getByRole('heading', { name: 'API reference' }).waitFor()
    const example = (name: string) => page.getByRole('region', { name: `Example of ${name}` }).innerText()
    expect(await example('callBack')).toContain("-H 'Authorization: Bearer <token>'")
    expect(await example('callBack')).toContain('X-Instance-Id: orders-compute')
    expect(await example('livez')).not.toContain('Authorization')
  })

  test('a viewer sees who is signed in, and is not offered what it may not do', async () => {
    const { url } = await guarded(startService)
    const page = await visit(`${url}/#/tasks/orders`)
    await give(page, tokenNamed('viewer'))
    await page.getByText('This token can only view.').waitFor()
    await page.getByRole('banner').getByText('wall', { exact: true }).waitFor()
    for (const name of ['Pause', 'Seal…', 'Cancel task…'])
      expect(await page.getByRole('button', { name }).count()).toBe(0)
  })

  test('the manifest is downloaded with the token', async () => {
    const { url } = await guarded(startService)
    const page = await visit(`${url}/#/tasks/orders`)
    await give(page, tokenNamed('viewer'))
    await page.locator('summary').filter({ hasText: 'More' }).click()
    const coming = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download the manifest' }).click()
    expect((await coming).suggestedFilename()).toBe('orders.ndjson')
  })
})
