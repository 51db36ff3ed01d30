import fc from 'fast-check'
import { Value } from 'typebox/value'
import { describe, expect, test } from 'vitest'
import { checkIdempotencyKey, idempotencyKeyKeywords } from '../src/index.ts'

describe('an idempotency key', () => {
  test.each(['2f1c9a05', '!', '~', 'k'.repeat(255)])('may be %j', (text) => {
    expect(checkIdempotencyKey(text)).toEqual({ ok: true, idempotencyKey: text })
  })

  test.each(['', 'k'.repeat(256), 'a b', 'a, b', 'ä', 'a\n', '\x7f'])('is refused: %j', (text) => {
    expect(checkIdempotencyKey(text)).toEqual({
      ok: false,
      detail: 'must have 1 to 255 visible ASCII characters, no spaces, and be given once',
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
