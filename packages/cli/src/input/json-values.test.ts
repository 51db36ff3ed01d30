import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ElementScanner, ScanError } from './json-values.ts'

function scan(text: string, size = text.length || 1): { text: string; line: number }[] {
  const scanner = new ElementScanner()
  const found = []
  for (let at = 0; at < text.length; at += size) found.push(...scanner.push(text.slice(at, at + size)))
  return [...found, ...scanner.end()]
}

const values = (text: string, size?: number) => scan(text, size).map((element) => JSON.parse(element.text))

describe('for any values and any chunks', () => {
  const json = fc.array(fc.jsonValue(), { maxLength: 6 })
  const size = fc.integer({ min: 1, max: 7 })

  test('an array yields its elements', () => {
    fc.assert(
      fc.property(json, size, fc.constantFrom(0, 2), (elements, chunk, indent) => {
        const text = JSON.stringify(elements, null, indent)
        expect(values(text, chunk)).toEqual(JSON.parse(text))
      }),
    )
  })

  test('lines yield their values', () => {
    // Input that begins with a bracket would be an array, so the first value is an object.
    fc.assert(
      fc.property(json, size, (elements, chunk) => {
        const all = [{}, ...elements]
        const text = all.map((element) => JSON.stringify(element)).join('\n')
        expect(values(text, chunk)).toEqual(JSON.parse(JSON.stringify(all)))
      }),
    )
  })
})

test('each element knows the line on which it begins', () => {
  expect(scan('[\n  {\n"a": 1},\n\n {"b": "\\n"}]\n').map(({ line }) => line)).toEqual([2, 5])
  expect(scan('{"a":1}\n\n{"b":2}\n').map(({ line }) => line)).toEqual([1, 3])
})

test('empty input has no element', () => {
  expect(scan('')).toEqual([])
  expect(scan(' \n ')).toEqual([])
  expect(scan(' [ ] ')).toEqual([])
})

test.each([
  ['[1,]', 1],
  ['[,1]', 1],
  ['[1 2]', 1],
  ['[1]\n[2]', 2],
  ['[1', 1],
  ['{"a":\n1', 1],
  ['{"a":1}\n,{"a":2}', 2],
  ['{}\n]', 2],
  ['"abc', 1],
])('%j is refused on line %i', (text, line) => {
  expect(() => scan(text)).toThrow(ScanError)
  try {
    scan(text, 1)
  } catch (error) {
    expect(error).toMatchObject({ line })
  }
})
