import { describe, expect, test } from 'vitest'
import { errorsOf, fleets } from '../../bench/eta/errors.ts'
import { run } from '../../bench/eta/fleet.ts'
import { paceOf } from '../../packages/server/src/handoff/views/eta.ts'

const SEEDS = [1, 2]

/** Deterministic: the fleets run in virtual time with seeded randomness. */
describe('the time left, compared with an estimate from throughput alone', () => {
  const compared = fleets.map((fleet) => ({
    name: fleet.name,
    before: errorsOf(fleet, 'pace', SEEDS),
    now: errorsOf(fleet, 'attempts', SEEDS),
  }))

  test.each(compared)('is hardly ever worse, and is given as often: $name', ({ before, now }) => {
    for (const [at, { median, estimated }] of now.entries()) {
      expect(median).toBeLessThan((before[at]?.median ?? 0) * 1.1)
      expect(estimated).toBeGreaterThanOrEqual((before[at]?.estimated ?? 0) - 0.02)
    }
  })

  // For a steady fleet, throughput alone is a good estimate.
  test.each(compared.filter(({ name }) => name !== 'steady'))(
    'is better when most is done: $name',
    ({ before, now }) => {
      expect(now.at(-1)?.median).toBeLessThan(before.at(-1)?.median ?? 0)
      expect(now.at(-1)?.p90).toBeLessThan(before.at(-1)?.p90 ?? 0)
    },
  )
})

describe('the time left while a dead worker holds the last lease', () => {
  const base = { workers: 2, leaseMillis: 300_000, backoffMillis: 10_000 }
  const cases = [
    { ...base, name: 'four partitions', partitions: [1000, 1000, 1000, 1000], attempt: () => 2000 },
    {
      ...base,
      name: 'beside a straggler that ends',
      workers: 3,
      partitions: new Array<number>(20).fill(1000),
      attempt: straggling(),
    },
  ].map((fleet) => ({ ...fleet, dyingAfter: [2] }))

  test.each(cases)('is never much too short: $name', (fleet) => {
    const { looks, doneAt } = run(fleet, 1, 1000)
    const held = looks.filter(({ at, row }) => at < doneAt - 20_000 && row.facts.partitions.ready === 0)
    // Until an attempt takes several times as long as others, it is not overdue.
    const seen = held.filter(({ at }) => at > (held[0]?.at ?? 0) + 15_000)
    expect(seen.length).toBeGreaterThan(200)
    for (const { at, row } of seen) {
      const { etaSeconds } = paceOf(row, at)
      expect(etaSeconds ?? 0).toBeGreaterThan(((doneAt - at) / 1000) * 0.8)
    }
  })
})

/** The fifth attempt takes two minutes and a half. */
function straggling(): () => number {
  let attempts = 0
  return () => {
    attempts += 1
    return attempts === 5 ? 150_000 : 2000
  }
}
