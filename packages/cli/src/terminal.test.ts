import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { styleText } from 'node:util'
import { expect, test } from 'vitest'
import { heightOf, jsonLine, safe, shown, styled, widthOf } from './terminal.ts'

test('a terminal of unknown size has the usual size', () => {
  expect([widthOf({ columns: 0 }), widthOf({}), widthOf({ columns: 80 })]).toEqual([100, 100, 80])
  expect([heightOf({ rows: 0 }), heightOf({}), heightOf({ rows: 50 })]).toEqual([24, 24, 50])
})

test('a state that only a newer service knows is shown without a style', () => {
  expect(styled(undefined, 'frozen')).toBe('frozen')
})

const forced = (style: 'red' | 'bold' | 'dim', text: string) =>
  styleText(style, text, { validateStream: false })

/** Moves the cursor, rings, conceals, an 8-bit CSI, and reverses what follows. */
const hostile = 'a\u001b[2J\u0007\u001b[8m\u009b31m\u202egnp.exe\u2069\u2028b'

test('of control characters and those that reorder text, only line breaks and own styles are written', () => {
  expect(safe(hostile)).toBe('a·[2J··[8m·31m·gnp.exe··b')
  const own = [forced('red', 'red'), forced('bold', 'bold'), forced('dim', 'dim\n\u001b[0m')].join('')
  expect(safe(own)).toBe(own)
})

test('JSON has them as escapes, with the same value', () => {
  const line = jsonLine({ [hostile]: hostile })
  expect(shown(line)).toBe(line)
  expect(JSON.parse(line)).toEqual({ [hostile]: hostile })
})

test('nothing is written around this file', async () => {
  const sources = fileURLToPath(new URL('.', import.meta.url))
  const around: string[] = []
  for await (const file of glob('**/*.ts', { cwd: sources })) {
    // main.ts must not import anything before it has checked the version of Node.
    if (file.endsWith('.test.ts') || file === 'terminal.ts' || file === 'main.ts') continue
    const lines = (await readFile(join(sources, file), 'utf8')).split('\n')
    around.push(...lines.filter((line) => WRITES.test(line)).map((line) => `${file}: ${line.trim()}`))
  }
  expect(around).toEqual([])
})

const WRITES = /\b(?:stdout|stderr|stream)\.write\(|\bconsole\.|\.pipe\(|\bpipeline\(/
