import { globSync } from 'node:fs'
import { expect, test } from 'vitest'
import { inCode, readDocument, root, sectionNamed, tableRows } from './support/markdown.ts'
import { textsOf, unknownQuotes } from './support/source-texts.ts'

// Log lines and messages that the docs quote are those of the sources.

const texts = textsOf('packages/{protocol,server,client,cli}/src/**/*.ts')

const quotedIn = (path: string, section: string): string[] =>
  tableRows(sectionNamed(readDocument(path), section).text).flatMap(([quoted = '']) => inCode(quoted))

test('the explained log lines exist', () => {
  const lines = quotedIn('docs/monitoring.md', 'Logs')
  expect(lines.length).toBeGreaterThan(15)
  expect(unknownQuotes(lines, texts)).toEqual([])
})

test('the messages of the troubleshooting table exist', () => {
  const messages = quotedIn('docs/troubleshooting.md', 'By symptom')
  expect(messages.length).toBeGreaterThan(4)
  expect(unknownQuotes(messages, texts)).toEqual([])
})

test.each(globSync('docs/*.md', { cwd: root }))('the messages that %s quotes exist', (path) => {
  const prose = readDocument(path).replaceAll(/^```[\s\S]*?^```$/gm, '')
  const messages = inCode(prose).filter((code) => isMessage(code))
  expect(unknownQuotes(messages, texts)).toEqual([])
})

/** Code of three or more plain words, unless it is a command. */
const isMessage = (code: string): boolean =>
  /^(?!(?:baton|npm|npx) )[a-z…][\p{L}"…]*[,;:]?(?: [\p{L}"…]+[,;:]?){2,}$/u.test(code)

test('comments are not messages', () => {
  const comment = 'Creates an empty file unless there is one'
  expect(readDocument('packages/server/src/disk/sqlite/folder.ts')).toContain(comment)
  expect(unknownQuotes([comment], texts)).toEqual([comment])
})
