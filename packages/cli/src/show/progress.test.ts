import fc from 'fast-check'
import stringWidth from 'fast-string-width'
import { expect, test } from 'vitest'
import { percent as percentOnPage } from '../../../dashboard/src/parts/format.ts'
import { bar, percent } from './progress.ts'

const segment = fc.record({
  amount: fc.oneof(fc.constant(0), fc.nat(), fc.maxSafeNat()),
  mark: fc.constantFrom('█', '▓', '░', '▚'),
  style: fc.constantFrom('red' as const, 'green' as const),
})

test('a bar has the given width and shows every non-empty part', () => {
  fc.assert(
    fc.property(fc.integer({ min: 10, max: 60 }), fc.array(segment, { maxLength: 5 }), (width, segments) => {
      const drawn = bar(width, segments)
      expect(stringWidth(drawn)).toBe(width)
      for (const { amount, mark } of segments) if (amount > 0) expect(drawn).toContain(mark)
    }),
  )
})

test('100% is shown only when everything is done', () => {
  expect(percent(999_999, 1_000_000)).toBe('99%')
  expect(percent(1_000_000, 1_000_000)).toBe('100%')
  expect(percent(0, 0)).toBe('')
})

test('percentages are rounded as on the page', () => {
  for (const [part, whole] of [
    [626, 1000],
    [5, 1000],
    [0, 1000],
    [996, 1000],
  ] as const) {
    expect(percent(part, whole)).toBe(percentOnPage(part, whole))
  }
  expect(percent(626, 1000)).toBe('63%')
  expect(percent(5, 1000)).toBe('<1%')
})
