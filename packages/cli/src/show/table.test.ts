import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { type Column, table } from './table.ts'

const columns: Column<{ name: string; left: string }>[] = [
  { title: 'TASK', of: ({ name }) => name },
  { title: 'PROGRESS', of: (_, width) => '#'.repeat(width), picture: { most: 20, least: 8 } },
  { title: 'LEFT', of: ({ left }) => left, align: 'right' },
]
const rows = [{ name: 'orders', left: '1m 19s' }]

const shownAt = (width: number) => stripVTControlCharacters(table(rows, columns, width)).split('\n')

test.each([
  [36, 20],
  [30, 14],
  [24, 8],
])('in %i columns the chart has %i, and the numbers fit', (width, picture) => {
  expect(shownAt(width)).toEqual([
    `TASK    ${'PROGRESS'.padEnd(picture)}    LEFT`,
    `orders  ${'#'.repeat(picture)}  1m 19s`,
  ])
})

test('without enough width the chart is dropped before numbers are truncated', () => {
  expect(shownAt(23)).toEqual(['TASK      LEFT', 'orders  1m 19s'])
  expect(shownAt(10)).toEqual(['TASK     …', 'orders  1…'])
})

const texts: Column<{ name: string; left: string }>[] = [
  { title: 'TASK', of: ({ name }, width) => name.slice(-width), text: { least: 6 } },
  { title: 'PROGRESS', of: (_, width) => '#'.repeat(width), picture: { most: 20, least: 8 } },
  { title: 'LEFT', of: ({ left }) => left, align: 'right' },
]
const long = [{ name: `${'x'.repeat(200)}-orders-7`, left: '1m 19s' }]

test.each([
  [37, '#'.repeat(8), 19],
  [25, '#'.repeat(8), 7],
  [20, undefined, 12],
  [14, undefined, 6],
])('in %i columns the numbers fit beside a long text', (width, picture, name) => {
  const [, row] = stripVTControlCharacters(table(long, texts, width)).split('\n')
  const cells = [long[0]?.name.slice(-name), ...(picture === undefined ? [] : [picture]), '1m 19s']
  expect(row).toBe(cells.join('  '))
})
