import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NotJson, parseJsonBytes } from '../../src/http/bodies/json-bytes.ts'

function fault(text: string): string {
  try {
    parseJsonBytes(Buffer.from(text))
  } catch (error) {
    if (error instanceof NotJson) return error.message.replace('the body is not JSON: ', '')
    throw error
  }
  return 'none'
}

describe('a body that is not JSON', () => {
  test.each([
    ['[NaN]', 'unexpected "N" at position 1'],
    ['[{"a": "NaN:[,", "b": NaN}]', 'unexpected "N" at position 22'],
    ['{"a": "\\\\\\"", "b": undefined}', 'unexpected "u" at position 19'],
    ['[nan]', 'unexpected "a" at position 2'],
    ['[1,,2]', 'unexpected "," at position 3'],
    ['[1, ]', 'unexpected "]" at position 4'],
    ['[true, [], trUe]', 'unexpected "U" at position 13'],
    ["['a']", 'unexpected "\'" at position 1'],
    ['taskId=orders', 'unexpected "a" at position 1'],
    ['["a", "\\😀"]', 'unexpected "😀" at position 8'],
    ['[😀]', 'unexpected "😀" at position 1'],
    ['[1 2]', 'unexpected character at position 3'],
    ['[1,', 'it is incomplete'],
  ])('of %s is explained: %s', (text, said) => {
    expect(fault(text)).toBe(said)
  })

  test('is answered with the position at which the parser stops', () => {
    const pieces = fc.constantFrom(
      ',',
      ':',
      '[',
      ']',
      '{',
      '}',
      'NaN',
      'nul',
      '\u00a0',
      'x',
      '\\',
      '"',
      "'",
      '😀',
    )
    const documents = fc.json({ maxDepth: 3 })
    fc.assert(
      fc.property(documents, pieces, fc.nat(), (document, piece, seed) => {
        const at = seed % (document.length + 1)
        const text = document.slice(0, at) + piece + document.slice(at)
        const place = firstUnexpected(text)
        if (place !== undefined) expect(fault(text)).toContain(`at position ${place}`)
      }),
      { numRuns: 4000 },
    )
  })
})

/** The last character of the shortest prefix that V8 refuses for a token and not for its end. */
function firstUnexpected(text: string): number | undefined {
  for (let length = 1; length <= text.length; length += 1) {
    try {
      JSON.parse(text.slice(0, length))
    } catch (error) {
      const { message } = error as Error
      if (message.startsWith('Unexpected token')) return length - 1
      // Other errors have a position; but an error about the end may disappear with more text.
      if (/after JSON at position|^Expected /.test(message)) return undefined
    }
  }
  return undefined
}
