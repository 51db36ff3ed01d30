import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { nodeFault, OLDEST_NODE } from '../src/main.ts'
import { baton } from './support/baton.ts'
import { Scratch } from './support/scratch.ts'

const source = (path: string) => readFileSync(fileURLToPath(new URL(`../${path}`, import.meta.url)), 'utf8')

test('the required Node version is that of the package', () => {
  expect(JSON.parse(source('package.json')).engines.node).toBe(`>=${OLDEST_NODE}`)
  for (const version of ['22.18.0', '22.20.1', '24.0.0', '100.0.0'])
    expect(nodeFault(version)).toBeUndefined()
  for (const version of ['22.17.9', '20.20.2', '8.0.0']) expect(nodeFault(version)).toContain(version)
})

test('an older Node gets one line of explanation for every command', async () => {
  const pretence = new Scratch().file(
    'older.mjs',
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`,
  )
  for (const args of [['--version'], ['tasks'], ['work', '--', 'true']]) {
    expect(await baton(args, { env: { NODE_OPTIONS: `--import=${pretence}` } })).toEqual({
      code: 1,
      stdout: '',
      stderr: `baton requires Node 22.18 or newer; this is Node 20.20.2, ${process.execPath}\n`,
    })
  }
})

test('the code before the check runs on every Node version', () => {
  const entry = source('src/main.ts')
  const imported = [...entry.matchAll(/^import .* from '(.*)'$/gm)].map((match) => match[1] ?? '')
  expect(imported).not.toEqual([])
  for (const path of imported) {
    expect(path).toMatch(/^\.\//)
    expect(source(`src/${path}`)).not.toMatch(/^import|^export .* from/m)
  }
})
