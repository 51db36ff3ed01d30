import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import config from '../vite.config.ts'

test('in development, all requests of the page reach its service', () => {
  const folder = fileURLToPath(new URL('../src', import.meta.url))
  const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
  const asked = sources
    .flatMap((source) => [...source.matchAll(/new URL\('([^']+)', baseUrl\)/g)])
    .map((match) => match[1] ?? '')
  expect(asked).toContain('livez')
  const passed = Object.keys(config.server?.proxy ?? {}).map((pattern) => new RegExp(pattern))
  expect(asked.filter((path) => !passed.some((pattern) => pattern.test(`/${path}`)))).toEqual([])
})
