import { describe, expect, test } from 'vitest'
import { episode } from './episode.ts'
import { type Mutant, mutants } from './mutants.ts'
import { operatorMutants } from './operator-mutants.ts'
import { taskMutants } from './task-mutants.ts'

const EPISODES = 150
const STEPS = 600
/** A search that has to try many seeds takes minutes on a busy machine. */
const SEARCH_MILLIS = 900_000

export const allMutants: readonly Mutant[] = [...mutants, ...taskMutants, ...operatorMutants]

/** Defines a test for each: the simulation finds the bug. */
export function testFinds(chosen: readonly Mutant[]): void {
  describe('the simulation finds', () => {
    test.each(chosen)(
      'that $bug',
      async ({ parts = {}, patch, firstSeed = 1, steps = STEPS }) => {
        const restore = patch?.()
        try {
          const failure = await firstFailure(parts, firstSeed, steps)
          expect(failure).not.toBeNull()
        } finally {
          restore?.()
        }
      },
      SEARCH_MILLIS,
    )
  })
}

async function firstFailure(
  parts: Parameters<typeof episode>[2],
  firstSeed: number,
  steps: number,
): Promise<Error | null> {
  for (let tried = 0; tried < EPISODES; tried += 1) {
    const seed = ((firstSeed - 1 + tried) % EPISODES) + 1
    const { failure } = await episode(seed, steps, parts)
    if (failure !== null) return failure
  }
  return null
}
