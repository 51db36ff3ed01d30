import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { helpText } from '../../packages/server/src/command-line.ts'
import { flagOf, settingNames, variableOf } from '../../packages/server/src/config.ts'
import { roles } from '../../packages/server/src/http/admission/tokens.ts'
import { boundNames, bounds } from '../../packages/server/src/http/budget/bounds.ts'
import { metrics } from '../../packages/server/src/http/observability/metrics.ts'
import { TestApp } from '../../packages/server/test/support/test-app.ts'
import { testFolder } from '../support/test-folder.ts'
import { inCode, readDocument, sectionNamed, sectionsOf, tableRows } from './support/markdown.ts'

const operations = readDocument('docs/operations.md')

describe('settings', () => {
  const rows = tableRows(sectionNamed(operations, 'Settings').text)

  test('the table has every setting', () => {
    const names = rows.map(([flag, variable]) => [flag?.split(/[` ]/)[1], inCode(variable ?? '')[0]])
    expect(names).toEqual(settingNames.map((name) => [flagOf(name), variableOf(name)]))
  })

  test('the cells of the table match the output of --help', () => {
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

describe('metrics', () => {
  const { text } = sectionNamed(operations, 'Metrics')

  test('the tables list every metric with its type, labels and meaning', () => {
    const shown = tableRows(text).map(([name = '', type, labels = '', meaning]) => ({
      name: inCode(name)[0],
      type,
      labels: inCode(labels),
      meaning,
    }))
    expect(shown).toEqual(metrics.map(({ name, type, labels, meaning }) => ({ name, type, labels, meaning })))
  })

  test('metrics that are mentioned exist', () => {
    const prose = operations.replaceAll(/^```[\s\S]*?^```$/gm, '')
    const mentioned = inCode(prose).flatMap((code) => /^baton_[a-z_]+/.exec(code)?.[0] ?? [])
    expect(mentioned.length).toBeGreaterThan(metrics.length)
    const names = new Set(metrics.map(({ name }) => name))
    expect(mentioned.filter((name) => !names.has(name))).toEqual([])
  })
})

test('the table of bounds is complete, with settings that exist', () => {
  const rows = tableRows(sectionNamed(operations, 'Bounds on callers').text)
  const shown = rows.map(([bound = '', flag = '', effect]) => [inCode(bound)[0], inCode(flag)[0], effect])
  expect(shown).toEqual(boundNames.map((name) => [name, bounds[name].flag, bounds[name].effect]))
  const flags = new Set(settingNames.map(flagOf))
  expect(shown.filter(([, flag]) => !flags.has(flag ?? ''))).toEqual([])
})

test('the table of files lists every file in the data folder of a running service', async () => {
  const data = await testFolder()
  await TestApp.open({ data })
  const rows = tableRows(sectionNamed(operations, 'Data folder').text)
  expect(rows.flatMap(([files = '']) => inCode(files)).toSorted()).toEqual(readdirSync(data).toSorted())
})

test('the contents list every section', () => {
  const [contents] = operations.split('\n## ', 1)
  const listed = [...(contents ?? '').matchAll(/^- \[(.+)\]/gm)].map((match) => match[1])
  const sections = sectionsOf(operations).filter(({ depth }) => depth === 2)
  expect(listed).toEqual(sections.map(({ title }) => title))
})

test('the table of roles is complete', () => {
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
