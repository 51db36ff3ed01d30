import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  portablePattern,
  printableText,
  qualifiedTableName,
  taskIdText,
  wellFormedText,
} from '../src/text-form.ts'

const forms = { wellFormedText, taskIdText, printableText, qualifiedTableName }
const accepts = (pattern: string, text: string) => new RegExp(pattern, 'u').test(text)

/** Texts with many characters that the forms distinguish. */
const texts = fc.string({
  unit: fc.oneof(
    fc.constantFrom(
      '.',
      '-',
      'a',
      '\u0000',
      '\u001f',
      ' ',
      '\u007f',
      '\u009f',
      '\u00a0',
      '\ue000',
      '\n',
      '😀',
    ),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
  maxLength: 6,
})

describe.each(Object.entries(forms))('%s', (_, { pattern }) => {
  test('matches the same texts in other languages', () => {
    fc.assert(
      fc.property(texts, (text) => accepts(portablePattern(pattern), text) === accepts(pattern, text)),
      { numRuns: 2000 },
    )
  })

  test('refuses lone surrogates, in any position', () => {
    expect(accepts(pattern, 'results.orders')).toBe(true)
    for (const text of ['\udfffesults.orders', 'res\ud800lts.orders', 'results.order\udc00'])
      expect([text, accepts(pattern, text)]).toEqual([text, false])
  })
})

test.each([
  ['.', false],
  ['..', false],
  ['...', true],
  ['.a', true],
  ['..a', true],
  ['a.', true],
])('whether %j is a valid task id: %j', (text, isOne) => {
  expect(accepts(taskIdText.pattern, text)).toBe(isOne)
})

test('a pattern without a portable form stays unchanged', () => {
  expect(portablePattern('^[a-z]+$')).toBe('^[a-z]+$')
})

test.each([
  [' . ', false],
  ['results. ', false],
  ['\u00a0.orders', false],
  ['my results.orders', true],
  [' results.orders', true],
])('whether %j is a valid table name: %j', (text, isOne) => {
  expect(accepts(qualifiedTableName.pattern, text)).toBe(isOne)
})
