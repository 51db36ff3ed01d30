import { expect, test } from 'vitest'
import { limitNames } from '../../packages/server/src/http/limits/limits.ts'
import { floods } from './support/floods.ts'
import { besiege } from './support/siege.ts'

/**
 * The same seed for all runs of the suite, so that a change is not blamed for a random failure; `npm run
 * siege` uses other seeds.
 */
const SEED = 1
const SECONDS = 8

test('under all floods, correct clients lose nothing, and the service recovers completely', async () => {
  const outcome = await besiege({ store: 'sqlite', seconds: SECONDS, seed: SEED })
  expect(outcome.findings, `npm run siege -- --seed ${SEED} --seconds ${SECONDS}`).toEqual([])
  expect(Object.keys(outcome.floods).toSorted()).toEqual(Object.keys(floods).toSorted())
  expect(outcome.honest.done).toBeGreaterThan(0)
  expect(Object.keys(outcome.boundsMet)).toEqual(limitNames)
})
