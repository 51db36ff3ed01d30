import { checkCallBack } from '@baton/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CallBackCheck, SeenIndexes } from './call-back-check.ts'

/** Few distinct values, so that duplicates, wrong order and mixed tasks occur. */
const descriptor = fc
  .record({ task: fc.constantFrom('a', 'a', 'a', 'b'), level: fc.nat({ max: 2 }), index: fc.nat({ max: 8 }) })
  .map(({ task, level, index }) => ({
    taskId: task,
    computeTableName: 'results.orders',
    partition_name: `${task}-${level}-${index}`,
    record_count: index,
    priorityLevel: level,
  }))

const levelOf = (each: { priorityLevel: number }) => each.priorityLevel

test('checking in pieces finds the same first error as checking the whole array', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(descriptor, { minLength: 1, maxLength: 12 }),
      fc.boolean(),
      fc.integer({ min: 1, max: 5 }),
      async (drawn, sorted, size) => {
        const array = sorted ? drawn.toSorted((a, b) => levelOf(a) - levelOf(b)) : drawn
        const whole = checkCallBack(array)
        const check = new CallBackCheck({})
        let found: string | undefined
        for (let at = 0; at < array.length && found === undefined; at += size) {
          found = (await check.take(array.slice(at, at + size)))?.errors?.[0]?.pointer
        }
        const pieceOf = (pointer: string | undefined) => Math.floor(Number(pointer?.split('/')[1]) / size)
        expect(pieceOf(found)).toBe(pieceOf(whole.ok ? undefined : whole.violations[0]?.pointer))
      },
    ),
  )
})

test('seen indexes are reported exactly as by a set', () => {
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
