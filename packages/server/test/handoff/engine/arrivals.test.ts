import { expect, test } from 'vitest'
import { type Arrival, Arrivals } from '../../../src/handoff/engine/state/arrivals.ts'

interface Waiting {
  readonly name: number
  arrival: Arrival<Waiting> | null
}

/** As many lanes as there may be. */
const MANY = 200_000

test('half of very many arrivals may leave, and the others are found in their order', () => {
  const arrivals = new Arrivals<Waiting>()
  const all = Array.from({ length: 2 * MANY }, (_, name): Waiting => ({ name, arrival: null }))
  for (const one of all) arrivals.put(one, 0)
  for (const one of all) if (one.name % 2 === 0) arrivals.remove(one)
  const ofLevel = arrivals.from(0)
  const found: number[] = []
  for (let next = ofLevel?.after(0); next !== undefined; next = ofLevel?.after(next.number))
    found.push(next.of.name)
  expect(found).toEqual(all.map(({ name }) => name).filter((name) => name % 2 === 1))
})
