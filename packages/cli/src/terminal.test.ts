import { expect, test } from 'vitest'
import { heightOf, styled, widthOf } from './terminal.ts'

test('a terminal of unknown size has the usual size', () => {
  expect([widthOf({ columns: 0 }), widthOf({}), widthOf({ columns: 80 })]).toEqual([100, 100, 80])
  expect([heightOf({ rows: 0 }), heightOf({}), heightOf({ rows: 50 })]).toEqual([24, 24, 50])
})

test('a state that only a newer service knows is shown without a style', () => {
  expect(styled(undefined, 'frozen')).toBe('frozen')
})
