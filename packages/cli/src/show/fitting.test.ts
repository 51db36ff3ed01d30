import fc from 'fast-check'
import stringWidth from 'string-width'
import { expect, test } from 'vitest'
import { beginning, ends, fitting } from './table.ts'

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
