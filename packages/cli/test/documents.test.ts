import { expect, test } from 'vitest'
import { readDocument, sectionNamed, tableRows } from '../../../test/docs/support/markdown.ts'
import { commands } from '../src/commands.ts'
import { commandExitCodes, exitCodes } from '../src/errors.ts'

const document = readDocument('docs/workers.md')
const reference = readDocument('docs/command.md')

test('every exit code is explained', () => {
  const explained = tableRows(sectionNamed(reference, 'Exit codes').text).flatMap(([codes = '']) =>
    codes.split(', ').map(Number),
  )
  expect(explained).toEqual(expect.arrayContaining(Object.values(exitCodes)))
  const ofCommands = tableRows(sectionNamed(document, 'baton work').text).map(([code = '']) => Number(code))
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
