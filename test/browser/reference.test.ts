import { expect, test } from 'vitest'
import { startService } from './support/service.ts'
import { overflow, visit } from './support/visit.ts'

test.each([1440, 390])('the API reference is used with the keyboard alone, at %i px', async (width) => {
  const { url } = await startService()
  const page = await visit(`${url}/docs`, { viewport: { width, height: 900 } })
  const contents = page.getByRole('navigation', { name: 'Operations' })
  await contents.getByRole('searchbox').waitFor()

  await page.keyboard.press('?')
  const keys = page.getByRole('dialog', { name: 'Keys' })
  await keys.waitFor()
  await page.keyboard.press('Escape')
  await keys.waitFor({ state: 'hidden' })

  await page.keyboard.press('/')
  await page.keyboard.type('Settle leases')
  await contents.getByRole('link', { name: /pull/ }).waitFor({ state: 'hidden' })
  const found = contents.getByRole('link', { name: /settle/ })
  await expect.poll(() => found.count()).toBe(1)
  await found.press('Enter')
  expect(new URL(page.url()).hash).toBe('#settle')
  const operation = page.getByRole('article', { name: /^Settle leases/ })
  await expect
    .poll(async () => Math.round((await operation.boundingBox())?.y ?? 0), { timeout: 10_000 })
    .toBeLessThan(200)

  expect(await overflow(page)).toBe(0)
})
