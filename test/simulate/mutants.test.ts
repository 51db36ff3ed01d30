import { describe, expect, test } from 'vitest'
import { episode } from './episode.ts'
import { mutants } from './mutants.ts'

const EPISODES = 150
const STEPS = 600

describe('the simulation finds', () => {
  test.each(mutants)('that $bug', async ({ parts = {}, patch }) => {
    const restore = patch?.()
    try {
      const failure = await firstFailure(parts)
      expect(failure).not.toBeNull()
    } finally {
      restore?.()
    }
  })
})

async function firstFailure(parts: Parameters<typeof episode>[2]): Promise<Error | null> {
  for (let seed = 1; seed <= EPISODES; seed += 1) {
    const { failure } = await episode(seed, STEPS, parts)
    if (failure !== null) return failure
  }
  return null
}
