import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Filter, FilterGroups, wantedOf } from '../../src/handoff/pull-filters.ts'
import type { NewlyReadyOf } from '../../src/handoff/store.ts'

const names = fc.subarray(['a', 'b', 'c'], { minLength: 1 })
const filter: fc.Arbitrary<Filter> = fc.record({ tables: fc.option(names), tasks: fc.option(names) })
const name = fc.constantFrom('a', 'b', 'c', 'd')
const newlyReadyOf: fc.Arbitrary<NewlyReadyOf> = fc.tuple(
  name,
  fc.option(name, { nil: null }),
  fc.integer({ min: 1, max: 9 }),
)

test('finds the groups whose filter matches, and counts what matches', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(filter, fc.boolean())),
      fc.option(fc.array(newlyReadyOf)),
      (members, newlyReady) => {
        const groups = new FilterGroups<number>()
        const added = members.map(([of], member) => groups.add(of, member))
        for (const [member, [, isRemoved]] of members.entries()) {
          const group = added[member]
          if (isRemoved && group !== undefined) groups.remove(group, member)
        }
        const sum = (newlyReady ?? []).reduce((total, [, , count]) => total + count, 0)
        const wanted = new Map<number, number>()
        for (const [{ members: found }, count] of groups.wanting(sum, newlyReady))
          for (const member of found) wanted.set(member, count)
        for (const [member, [of, isRemoved]] of members.entries())
          expect(wanted.get(member) ?? 0).toBe(isRemoved ? 0 : wantedOf(of, sum, newlyReady))
      },
    ),
  )
})

test('a notification does not read the filters of other groups', () => {
  const groups = new FilterGroups<number>()
  let read = 0
  for (let member = 0; member < 1000; member += 1) {
    const tasks = new Proxy([`task-${member}`], {
      get: (names, key, receiver) => {
        read += 1
        return Reflect.get(names, key, receiver)
      },
    })
    groups.add({ tables: null, tasks }, member)
  }
  read = 0
  const wanting = groups.wanting(1, [['task-7', 'results.orders', 1]])
  expect([...wanting.keys()].flatMap(({ members }) => [...members])).toEqual([7])
  expect(read).toBe(0)
})
