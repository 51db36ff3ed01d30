import { expect, test } from 'vitest'
import { KnownNames } from '../../src/store/postgres/rows/known-names.ts'

test('what was asked for since the last time stays, and what nobody asks for goes', () => {
  const known = new KnownNames<string, number>()
  known.set('a', 1)
  known.set('b', 2)
  known.age()
  expect(known.recent).toBe(0)
  expect(known.get('a')).toBe(1)
  known.age()
  expect([known.get('a'), known.get('b')]).toEqual([1, undefined])
})
