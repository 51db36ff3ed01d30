import { describe, expect, test } from 'vitest'
import { errorsOf, fleets } from '../../bench/eta/errors.ts'

const SEEDS = [1, 2]

/** Deterministic: the fleets run in virtual time, with chance from a seed. */
describe.each(fleets.map((fleet) => [fleet.name, fleet] as const))(
  'the time left of a fleet: %s',
  (name, fleet) => {
    const [before, now] = [errorsOf(fleet, 'pace', SEEDS), errorsOf(fleet, 'attempts', SEEDS)]
    const last = before.length - 1

    test('is hardly ever worse than by the pace alone, and says as much', () => {
      for (const [at, { median, told }] of now.entries()) {
        expect(median).toBeLessThan((before[at]?.median ?? 0) * 1.1)
        expect(told).toBeGreaterThanOrEqual((before[at]?.told ?? 0) - 0.02)
      }
    })

    test.runIf(name !== 'steady')('is better when most is done: what is held up counts', () => {
      expect(now[last]?.median).toBeLessThan(before[last]?.median ?? 0)
      expect(now[last]?.p90).toBeLessThan(before[last]?.p90 ?? 0)
    })
  },
)
