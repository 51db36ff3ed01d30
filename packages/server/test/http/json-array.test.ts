import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JsonArrayText } from '../../src/http/bodies/json-array.ts'
import { NotJson, parseJsonBytes } from '../../src/http/bodies/json-bytes.ts'
import { JsonShape } from '../../src/http/bodies/json-shape.ts'

const generous = { elements: 1e9, values: 1e9, elementBytes: 1e9 }

function arrayText(text: string, pieceBytes: number): JsonArrayText {
  const bytes = Buffer.from(text)
  const shape = new JsonShape(generous, pieceBytes)
  shape.take(bytes)
  return new JsonArrayText(bytes, shape.cuts)
}

const piecesOf = (text: string, pieceBytes: number) => [...arrayText(text, pieceBytes).pieces()]

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
  .filter((text) => arrayText(text, 1).isArray)

describe('an array that is parsed in pieces', () => {
  test('has the same elements, or the same error, as when it is parsed at once', () => {
    fc.assert(
      fc.property(arrays, fc.integer({ min: 1, max: 40 }), (text, pieceBytes) => {
        expect(outcome(() => piecesOf(text, pieceBytes).flat())).toEqual(
          outcome(() => parseJsonBytes(Buffer.from(text))),
        )
      }),
      { numRuns: 2000 },
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
    expect(outcome(() => piecesOf(text, 1))).toBe(`the body is not JSON: ${said}`)
  })

  test('may be empty', () => {
    expect(piecesOf(' [ ] ', 1)).toEqual([[]])
  })

  test('has pieces of about the given size, and of at most 1,000 elements', () => {
    expect(piecesOf('[1, 2, 3, 4, 5]', 5)).toEqual([[1, 2], [3, 4], [5]])
    expect(piecesOf(JSON.stringify(Array(2500).fill(0)), 1e6).map(({ length }) => length)).toEqual([
      1000, 1000, 500,
    ])
  })
})
