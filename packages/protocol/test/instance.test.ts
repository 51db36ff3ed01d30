import { describe, expect, test } from 'vitest'
import { checkInstanceId } from '../src/index.ts'

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
    [['a', 'b'], 'must be given once'],
    [undefined, 'must be a string, got nothing'],
  ])('is refused: %j', (value, detail) => {
    expect(checkInstanceId(value)).toEqual({ ok: false, detail })
  })
})
