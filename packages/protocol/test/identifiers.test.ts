import fc from 'fast-check'
import { Value } from 'typebox/value'
import { describe, expect, test } from 'vitest'
import {
  checkIdempotencyKey,
  checkInstanceId,
  idempotencyKeyKeywords,
  readTraceparent,
} from '../src/index.ts'

describe('an instance id', () => {
  test.each(['loader-7', 'a', 'x'.repeat(256), 'host 1/β', '😀'.repeat(256)])('may be %j', (value) => {
    expect(checkInstanceId(value)).toEqual({ ok: true, instanceId: value })
  })

  test.each([
    ['', 'must not be empty, got an empty string'],
    ['x'.repeat(257), `must have at most 256 characters, got the string "${'x'.repeat(40)}…"`],
    ['a\nb', 'must not be empty or contain control characters or lone surrogates, got the string "a\\nb"'],
    [
      '\ud800',
      'must not be empty or contain control characters or lone surrogates, got the string "\\ud800"',
    ],
    [['a', 'b'], 'must not be repeated'],
    [undefined, 'must be a string, got nothing'],
  ])('is refused: %j', (value, detail) => {
    expect(checkInstanceId(value)).toEqual({ ok: false, detail })
  })
})

describe('an idempotency key', () => {
  test.each(['2f1c9a05', '!', '~', 'k'.repeat(255)])('may be %j', (text) => {
    expect(checkIdempotencyKey(text)).toEqual({ ok: true, idempotencyKey: text })
  })

  test.each(['', 'k'.repeat(256), 'a b', 'a, b', 'ä', 'a\n', '\x7f'])('is refused: %j', (text) => {
    expect(checkIdempotencyKey(text)).toEqual({
      ok: false,
      detail: 'must have 1 to 255 visible ASCII characters without spaces, and must not be repeated',
    })
  })

  test('matches the schema keywords', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 300 }), fc.string({ unit: 'binary' })), (text) => {
        expect(checkIdempotencyKey(text).ok).toBe(Value.Check(idempotencyKeyKeywords, text))
      }),
    )
  })
})

const [TRACE, PARENT] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']

test('a traceparent is passed on unchanged', () => {
  for (const flags of ['00', '01', '03']) {
    const text = `00-${TRACE}-${PARENT}-${flags}`
    expect(readTraceparent(text)).toBe(text)
  }
})

test('a later version is passed on as version 00, with the known flag', () => {
  expect(readTraceparent(`01-${TRACE}-${PARENT}-03`)).toBe(`00-${TRACE}-${PARENT}-01`)
  expect(readTraceparent(`cc-${TRACE}-${PARENT}-fe-more`)).toBe(`00-${TRACE}-${PARENT}-00`)
})

test.each([
  undefined,
  '',
  'garbage',
  `ff-${TRACE}-${PARENT}-01`,
  `00-${TRACE}-${PARENT}-01-more`,
  `cc-${TRACE}-${PARENT}-01.more`,
  `00-${'0'.repeat(32)}-${PARENT}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE.toUpperCase()}-${PARENT}-01`,
  `00-${TRACE}-${PARENT}-1`,
  `00-${TRACE}-${PARENT}`,
  `00-${TRACE}-${PARENT}-01, 00-${TRACE}-${PARENT}-01`,
  ` 00-${TRACE}-${PARENT}-01`,
])('%s is ignored', (text) => {
  expect(readTraceparent(text)).toBeNull()
})
