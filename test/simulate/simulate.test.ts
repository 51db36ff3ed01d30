import { expect, test } from 'vitest'
import { episode } from './episode.ts'

const EPISODES = 12
const STEPS = 1000

/** The same for everyone, so that a change is not blamed for a story that others were spared; `npm run simulate` looks further. */
const SEED = 1

test('whatever fails, nothing acknowledged is lost and nothing is handed out twice', async () => {
  for (let seed = SEED; seed < SEED + EPISODES; seed += 1) {
    const { failure } = await episode(seed, STEPS)
    expect(failure, `npm run simulate -- --seed ${seed} --seconds 0 --steps ${STEPS}`).toBeNull()
  }
})

test('a seed tells the same story again', async () => {
  const [once, again] = [await episode(SEED, 300, {}, true), await episode(SEED, 300, {}, true)]
  expect(once.story.length).toBeGreaterThan(300)
  expect(again.story).toEqual(once.story)
})
