import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { partitionsOf, startService } from './support/service.ts'
import { accessibilityFaults, visiting } from './support/visit.ts'

const visit = visiting()

async function startGuardedService() {
  const file = join(tmpdir(), `baton-tokens-${process.pid}.json`)
  const tokens = [
    { name: 'compute', token: 'producer-token', roles: ['producer'] },
    { name: 'wall', token: 'viewer-token', roles: ['viewer'] },
    { name: 'oncall', token: 'operator-token', roles: ['operator'] },
  ]
  await writeFile(file, JSON.stringify({ tokens }))
  const { url } = await startService('--tokens-file', file)
  await new BatonClient({ url, token: 'producer-token' }).callBack(partitionsOf('orders', [1]))
  return url
}

describe('where the service asks for tokens', () => {
  test('the page asks for one, takes no wrong one, and keeps it for the tab', async () => {
    const url = await startGuardedService()
    const page = await visit(url)
    await page.getByRole('heading', { name: 'This service asks for a token' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByLabel('Token').fill('no-such-token')
    await page.keyboard.press('Enter')
    await page.getByText('The token is not known here, or its role does not allow looking.').waitFor()
    await page.getByLabel('Token').fill('operator-token')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'orders' }).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await page.reload()
    await page.getByRole('link', { name: 'orders' }).click()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    expect(await page.evaluate('[localStorage.length, document.cookie]')).toEqual([0, ''])
  })

  test('a viewer looks, and is told that looking is all', async () => {
    const url = await startGuardedService()
    const page = await visit(`${url}/#/tasks/orders`)
    await page.getByLabel('Token').fill('viewer-token')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByText("the token's roles do not cover this; it takes operator").waitFor()
    expect(await page.getByRole('heading', { name: 'orders' }).isVisible()).toBe(true)
  })
})
