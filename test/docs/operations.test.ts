import { globSync, readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { roles } from '../../packages/server/src/http/admission/tokens.ts'
import { TestApp } from '../../packages/server/test/support/test-app.ts'
import { testFolder } from '../support/test-folder.ts'
import { inCode, readDocument, root, sectionNamed, sectionsOf, tableRows } from './support/markdown.ts'

test('the table of files lists every file in the data folder of a running service', async () => {
  const data = await testFolder()
  await TestApp.open({ data })
  const rows = tableRows(sectionNamed(readDocument('docs/backup.md'), 'Data folder').text)
  expect(rows.flatMap(([files = '']) => inCode(files)).toSorted()).toEqual(readdirSync(data).toSorted())
})

/** A page with contents begins with a list of links to its sections. */
const listedIn = (page: string) =>
  [...(page.split('\n## ', 1)[0] ?? '').matchAll(/^- \[(.+?)\]\(#/gm)].map(([, title = '']) => title)

const withContents = globSync('docs/*.md', { cwd: root }).filter(
  (path) => listedIn(readDocument(path)).length > 0,
)

test.each(withContents)('the contents of %s list every section', (path) => {
  const page = readDocument(path)
  const sections = sectionsOf(page).filter(({ depth }) => depth === 2)
  expect(listedIn(page).map((title) => title.replaceAll('`', ''))).toEqual(sections.map(({ title }) => title))
})

test('the table of roles is complete', () => {
  const rows = tableRows(sectionNamed(readDocument('docs/security.md'), 'Tokens and roles').text)
  expect(rows.map(([role]) => inCode(role ?? '')[0]).toSorted()).toEqual([...roles].toSorted())
})
