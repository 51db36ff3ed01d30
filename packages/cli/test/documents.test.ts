import { expect, test } from 'vitest'
import { inCode, readDocument, sectionNamed, tableRows } from '../../../test/docs/support/markdown.ts'
import { commands } from '../src/commands.ts'
import { commandExitCodes, exitCodes } from '../src/errors.ts'

const document = readDocument('docs/cli.md')
const rowsOf = (title: string) => tableRows(sectionNamed(document, title).text)

test('every command is listed, in the words of its help', () => {
  const listed = rowsOf('All commands').map(([name = '', summary]) => [inCode(name)[0], summary])
  expect(listed).toEqual(commands.map(({ name, summary }) => [name, summary]))
})

test('every exit code is explained', () => {
  const explained = rowsOf('Exit codes').flatMap(([codes = '']) => codes.split(', ').map(Number))
  expect(explained).toEqual(expect.arrayContaining(Object.values(exitCodes)))
  const ofCommands = rowsOf('Work: any program is a worker').map(([code = '']) => Number(code))
  expect(ofCommands).toEqual(expect.arrayContaining(Object.values(commandExitCodes)))
})

test('every flag that the document names exists', async () => {
  const loaded = await Promise.all(commands.map(({ load }) => load()))
  const own = loaded.flatMap((command) => (command.hasOwnLine === true ? [] : Object.keys(command.flags)))
  const known = new Set(own.concat('help', 'global'))
  const prose = document.replaceAll(/^ *psql .*$/gm, '')
  const named = [...prose.matchAll(/(?<![\w-])--([a-z][a-z-]*)/g)].map((match) => match[1] ?? '')
  expect(named.filter((flag) => !known.has(flag))).toEqual([])
})

test('every variable that a command gets is documented', () => {
  const source = readDocument('packages/cli/src/work/command-handler.ts')
  const names = [...source.matchAll(/\b(BATON_[A-Z_]+|TRACEPARENT): [^_]/g)].map((match) => match[1])
  expect(names.length).toBeGreaterThanOrEqual(10)
  for (const name of names) expect(document).toContain(`\`${name}\``)
})
