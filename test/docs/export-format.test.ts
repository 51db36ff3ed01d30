import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Header } from '../../packages/server/src/archive/export-file.ts'
import { exportStore } from '../../packages/server/src/archive/store-tools.ts'
import { openSqliteDisk } from '../../packages/server/src/disk/sqlite/sqlite-disk.ts'
import { bigFields } from '../../packages/server/src/handoff/archived.ts'
import { sections } from '../../packages/server/src/handoff/table-fields.ts'
import { testFolder } from '../support/test-folder.ts'
import { fencesOf, inCode, readDocument, sectionNamed, tableRows } from './support/markdown.ts'

const document = sectionNamed(readDocument('docs/backup.md'), 'The file of an export').text

test('the table of sections is complete and in order', () => {
  const rows = tableRows(document.slice(document.indexOf('All sections are present')))
  expect(rows.flatMap(([names = '']) => inCode(names))).toEqual(sections)
})

test('numbers that are written as text are named', () => {
  const named = new Set(inCode(document.replaceAll(/^```[\s\S]*?^```$/gm, '')))
  const big = sections.flatMap((section) => [...bigFields(section)])
  expect(big.filter((field) => !named.has(field))).toEqual([])
})

test('the header of the example has the fields of an export', async () => {
  const data = await testFolder()
  const disk = await openSqliteDisk({ folder: data })
  await disk.close()
  const file = join(await testFolder(), 'empty.ndjson')
  await exportStore({ data }, { file })
  const [written = ''] = (await readFile(file, 'utf8')).split('\n', 1)
  const [shown = ''] = fencesOf(document)[0]?.text.split('\n', 1) ?? []
  const real = JSON.parse(written) as Header
  const example = JSON.parse(shown.replaceAll(',…', '')) as Header
  expect(Object.keys(example)).toEqual(Object.keys(real))
  expect(Object.keys(example.nextIds)).toEqual(Object.keys(real.nextIds))
  expect(example).toMatchObject({ format: real.format, schema: real.schema })
})
