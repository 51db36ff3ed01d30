import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SeenIndexes } from './call-back-check.ts'

test('returns exactly what a set would', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 40 }), { maxLength: 200 }), (indexes) => {
      const seen = new SeenIndexes()
      const set = new Set<number>()
      for (const index of indexes) {
        expect(seen.add(index)).toBe(!set.has(index))
        set.add(index)
      }
    }),
  )
})
