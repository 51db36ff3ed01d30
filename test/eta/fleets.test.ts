import { describe, expect, test } from 'vitest'
import { errorsOf, fleets } from '../../bench/eta/errors.ts'

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
