import { expect, test } from 'vitest'
import { attacked } from './support/attacked.ts'
import { attacks } from './support/attacks.ts'

// How fast is judged on a quiet machine: npm run siege -- --full
test.each(attacks)('during $name, honest clients go on, and probes are answered', async (attack) => {
  const { rateDuring, probesDuring, faults } = await attacked(attack, 1)
  expect(rateDuring).toBeGreaterThan(0)
  expect(probesDuring.count).toBeGreaterThan(0)
  expect(faults).toEqual([])
})
