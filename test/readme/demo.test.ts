import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { root } from '../docs/support/markdown.ts'

const demo = (...args: string[]) =>
  spawnSync(process.execPath, ['--conditions=baton-source', `${root}examples/demo/main.ts`, ...args], {
    encoding: 'utf8',
  })

test('the demo prints its usage', () => {
  const { status, stdout } = demo('--help')
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^usage: npm run demo [^\n]+\n$/)])
})

test('the demo prints no stack trace for an unknown flag', () => {
  const { status, stderr } = demo('--prot', '1')
  expect(status).toBe(2)
  expect(stderr).toMatch(/^[^\n]*'--prot'[^\n]*\nusage: npm run demo [^\n]+\n$/)
})
