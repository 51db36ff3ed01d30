import { expect, test } from 'vitest'
import { episode } from './episode.ts'

const EPISODES = 6
const STEPS = 800

/**
 * The same seed for all runs of the suite, so that a change is not blamed for a random failure; `npm run
 * simulate` uses other seeds.
 */
const SEED = 7

test.each(Array.from({ length: EPISODES }, (_, at) => SEED + at))(
  'under all faults, nothing acknowledged is lost and nothing is handed out twice, seed %s',
  async (seed) => {
    const { failure } = await episode(seed, STEPS)
    expect(failure, `npm run simulate -- --seed ${seed} --seconds 0 --steps ${STEPS}`).toBeNull()
  },
)

test('the same seed gives the same sequence of events', async () => {
  const [once, again] = [await episode(SEED, 300, {}, true), await episode(SEED, 300, {}, true)]
  expect(once.story.length).toBeGreaterThan(300)
  expect(again.story).toEqual(once.story)
})
