import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import stringWidth from 'fast-string-width'
import { expect, test } from 'vitest'
import { beginning, type Column, ends, fitting, table } from './table.ts'

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
])('in %i columns the numbers fit next to a long text', (width, picture, name) => {
  const [, row] = stripVTControlCharacters(table(long, texts, width)).split('\n')
  const cells = [long[0]?.name.slice(-name), ...(picture === undefined ? [] : [picture]), '1m 19s']
  expect(row).toBe(cells.join('  '))
})

test.each([
  ['loader-7', 8],
  ['Zählwerk', 8],
  ['Za\u0308hlwerk', 8],
  ['北京', 4],
  ['ローダー', 8],
  ['ﾛｰﾀﾞｰ', 5],
  ['로더', 4],
  ['🚀-1', 4],
  ['█▓░▚·…', 6],
  ['\u001b[31mred\u001b[39m', 3],
])('%j takes %i columns', (text, width) => {
  expect(stringWidth(text)).toBe(width)
})

test('a truncated name keeps its distinguishing part', () => {
  const name = (end: string) => `${'loader-in-the-second-rack-'.repeat(9)}${end}`
  expect(ends(name('7'), 20)).toBe('loader-in…ond-rack-7')
  expect(ends(name('8'), 20)).not.toBe(ends(name('7'), 20))
  expect(ends('loader-7', 20)).toBe('loader-7')
})

test('truncated text fits', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'ä', '北', '🚀', '\u0308') })
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 30 }), (line, width) => {
      for (const cut of [beginning, ends, fitting])
        expect(stringWidth(cut(line, width))).toBeLessThanOrEqual(width)
    }),
  )
})
