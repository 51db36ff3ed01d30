import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import * as client from '@baton/client'
import { expect, onTestFinished, test } from 'vitest'
import { fencesOf, readDocument, root } from '../../../test/docs/support/markdown.ts'

const documents = [
  'docs/client.md',
  'docs/writing-results.md',
  'packages/client/README.md',
  'packages/protocol/README.md',
  'packages/server/README.md',
]

/** What the shorter examples presuppose. */
const assumed = `
declare function load(table: string, partition: string, signal: AbortSignal): Promise<number>
declare const body: string
`

test('every example is a program that compiles', { timeout: 120_000 }, () => {
  mkdirSync(join(root, 'node_modules/.cache'), { recursive: true })
  const folder = mkdtempSync(join(root, 'node_modules/.cache/examples-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [at, path] of documents.entries()) {
    const examples = fencesOf(readDocument(path)).filter(({ language }) => language === 'ts')
    expect(examples.length, path).toBeGreaterThan(0)
    for (const [number, { text }] of examples.entries()) {
      const prelude = text.includes('declare ') ? '' : assumed
      writeFileSync(join(folder, `${at}-${number}.ts`), `${prelude}${text}\nexport {}\n`)
    }
  }
  const settings = {
    extends: join(root, 'tsconfig.base.json'),
    compilerOptions: { noEmit: true, types: ['node'], typeRoots: [join(root, 'node_modules/@types')] },
    include: ['*.ts'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings))
  // Only the examples are under test: their imports are checked elsewhere.
  const complaints = compile(folder).filter((line) => /^\d+-\d+\.ts/.test(line))
  expect(complaints).toEqual([])
})

function compile(folder: string): string[] {
  try {
    execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', '.', '--checkers', '1'], {
      cwd: folder,
      encoding: 'utf8',
    })
    return []
  } catch (error) {
    return (error as { stdout: string }).stdout.split('\n')
  }
}

test('the example for logs keeps the error of an event as JSON', async () => {
  const example = fencesOf(readDocument('docs/client.md')).find(({ text }) => text.includes('onEvent'))
  const [shaping = ''] = /^function fieldsOf[\s\S]*?^}$/m.exec(example?.text ?? '') ?? []
  const module = `data:text/javascript,${encodeURIComponent(`export ${stripTypeScriptTypes(shaping)}`)}`
  const { fieldsOf } = await import(/* @vite-ignore */ module)
  const line = JSON.stringify(fieldsOf({ kind: 'threw', partition: {}, error: new RangeError('no space') }))
  expect(JSON.parse(line)).toMatchObject({
    kind: 'threw',
    error: { name: 'RangeError', message: 'no space' },
  })
  expect(fieldsOf({ kind: 'renewed', leases: 2 })).toEqual({ kind: 'renewed', leases: 2 })
})

test('every call, event and error is described', () => {
  const document = readDocument('docs/client.md')
  const calls = Object.getOwnPropertyNames(client.BatonClient.prototype).filter(
    (name) => !['constructor', 'tableField', 'callBackText'].includes(name),
  )
  const errors = Object.keys(client).filter((name) => name.endsWith('Error'))
  const source = readDocument('packages/client/src/worker-options.ts')
  const events = [...source.matchAll(/readonly kind: '(\w+)'/g)].map((match) => match[1])
  expect(events.length).toBeGreaterThan(10)
  for (const name of [...calls, ...errors, ...events]) expect(document).toContain(`\`${name}\``)
})
