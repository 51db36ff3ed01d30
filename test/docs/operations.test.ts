import { globSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { flagOf, settingNames, variableOf } from '../../packages/server/src/config.ts'
import { helpText } from '../../packages/server/src/help-text.ts'
import { roles } from '../../packages/server/src/http/tokens.ts'
import { inCode, readDocument, root, sectionNamed, sectionsOf, tableRows } from './support/markdown.ts'

const operations = readDocument('docs/operations.md')

describe('settings', () => {
  const rows = tableRows(sectionNamed(operations, 'Settings').text)

  test('the table has every setting', () => {
    const names = rows.map(([flag, variable]) => [flag?.split(/[` ]/)[1], inCode(variable ?? '')[0]])
    expect(names).toEqual(settingNames.map((name) => [flagOf(name), variableOf(name)]))
  })

  test('its cells are what --help prints', () => {
    const plain = (cell: string) => inCode(cell)[0] ?? cell
    const shown = rows.map(([flag = '', variable = '', standard = '', meaning]) => [
      plain(flag),
      plain(variable),
      plain(standard),
      meaning,
    ])
    expect(shown).toEqual(helpRows(helpText('0.0.0')))
  })
})

test('the contents list every section', () => {
  const [contents] = operations.split('\n## ', 1)
  const listed = [...(contents ?? '').matchAll(/^- \[(.+)\]/gm)].map((match) => match[1])
  const sections = sectionsOf(operations).filter(({ depth }) => depth === 2)
  expect(listed).toEqual(sections.map(({ title }) => title))
})

test('the log lines that it explains are logged', () => {
  const sources = globSync('packages/server/src/**/*.ts', { cwd: root }).map((path) =>
    readFileSync(root + path, 'utf8'),
  )
  const lines = tableRows(sectionNamed(operations, 'Logs').text).map(([line]) => inCode(line ?? '')[0] ?? '')
  expect(lines.length).toBeGreaterThan(5)
  const unknown = lines.filter(
    (line) => !sources.some((source) => source.includes(line.replace(/\W*…$/, ''))),
  )
  expect(unknown).toEqual([])
})

test('the table of roles has them all', () => {
  const rows = tableRows(sectionNamed(operations, 'Tokens and roles').text)
  expect(rows.map(([role]) => inCode(role ?? '')[0]).toSorted()).toEqual([...roles].toSorted())
})

/** Each setting takes two lines: flag, variable and default in columns, then the meaning. */
function helpRows(help: string): string[][] {
  const lines = help.split('\n')
  return lines.flatMap((line, at) => {
    const columns = /^ {2}(--.+?) {2,}(BATON_\w+) {2,}(.+)$/.exec(line)
    return columns === null ? [] : [[...columns.slice(1), lines[at + 1]?.trim() ?? '']]
  })
}
