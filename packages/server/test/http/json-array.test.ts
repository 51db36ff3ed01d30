import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ElementTooLarge, JsonArrayText, MAX_ELEMENT_BYTES } from '../../src/http/bodies/json-array.ts'
import { NotJson, parseJsonBytes } from '../../src/http/bodies/json-bytes.ts'

const inChunks = (text: string, chunkBytes?: number) =>
  [...new JsonArrayText(Buffer.from(text)).elements(chunkBytes)].flat()

/** The value, or the message of the error. */
function outcome(parse: () => unknown): unknown {
  try {
    return { value: parse() }
  } catch (error) {
    if (error instanceof NotJson) return error.message
    throw error
  }
}

/** Whole arrays, and arrays with something inserted, left out or doubled. */
const arrays = fc
  .tuple(
    fc.array(fc.json({ maxDepth: 2 }), { maxLength: 6 }),
    fc.constantFrom('', ' ', '\n\t', '\ufeff', '  ,'),
    fc.option(
      fc.tuple(
        fc.nat(),
        fc.nat(3),
        fc.constantFrom('', ',', ',,', '[', ']', '}', '"', '\\', 'é', '😀', '0', ' '),
      ),
    ),
  )
  .map(([elements, space, change]) => {
    const text = `${space === '  ,' ? '' : space}[${elements.join(`${space === '\ufeff' ? '' : space},`)}]`
    if (change === null) return text
    const [seed, removed, inserted] = change
    const at = seed % (text.length + 1)
    return text.slice(0, at) + inserted + text.slice(at + removed)
  })
  .filter((text) => new JsonArrayText(Buffer.from(text)).firstCharacter === '[')

describe('an array that is parsed in chunks', () => {
  test('has the same elements, or the same error, as when it is parsed at once', () => {
    fc.assert(
      fc.property(arrays, fc.integer({ min: 1, max: 40 }), (text, chunkBytes) => {
        expect(outcome(() => inChunks(text, chunkBytes))).toEqual(
          outcome(() => parseJsonBytes(Buffer.from(text))),
        )
      }),
      { numRuns: 5000 },
    )
  })

  test.each([
    ['[1, 2, ]', 'unexpected "]" at position 7'],
    ['[ , 2]', 'unexpected "," at position 2'],
    ['["é", "é", x]', 'unexpected "x" at position 11'],
    ['[1, 2] 3', 'unexpected character at position 7'],
    ['[1, 2}', 'unexpected character at position 5'],
    ['[1, ', 'it is incomplete'],
  ])('of %s is refused: %s', (text, said) => {
    expect(outcome(() => inChunks(text, 1))).toBe(`the body is not JSON: ${said}`)
  })

  test('may be empty', () => {
    expect(inChunks(' [ ] ')).toEqual([])
  })

  test('has elements of at most 1 MiB', () => {
    const longest = 'a'.repeat(MAX_ELEMENT_BYTES - 2)
    expect(inChunks(`["${longest}",1,"${longest}"]`)).toHaveLength(3)
    for (const text of [`[1,"${longest}a",2]`, `[1,"${longest}a"]`, `[1,"${longest}aa`])
      expect(() => inChunks(text)).toThrow(new ElementTooLarge(1))
  })
})
