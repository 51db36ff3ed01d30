import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LineCutter } from './event-log.ts'

function linesOf(longest: number, chunks: readonly Uint8Array[]): string[] {
  const lines: string[] = []
  const cutter = new LineCutter(longest, (line) => lines.push(line))
  for (const chunk of chunks) cutter.add(Buffer.from(chunk))
  cutter.end()
  return lines
}

test('lines are reported when they end, the last one also without a line break', () => {
  const chunks = ['a\n\nb', 'c\nd'].map((text) => Buffer.from(text))
  expect(linesOf(10, chunks)).toEqual(['a', '', 'bc', 'd'])
})

test('for any chunks, nothing is lost and no line is longer than allowed', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'ä', '\n', '☃') })
  fc.assert(
    fc.property(
      text,
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 4 }),
      (all, size, longest) => {
        const bytes = Buffer.from(all)
        const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
          bytes.subarray(at * size, (at + 1) * size),
        )
        const lines = linesOf(longest, chunks)
        expect(lines.every((line) => line.length <= longest)).toBe(true)
        expect(lines.join('')).toBe(all.replaceAll('\n', ''))
      },
    ),
  )
})
