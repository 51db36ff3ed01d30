import fc from 'fast-check'
import { describe, test } from 'vitest'
import { type StoreHarness, testPolicy } from '../store/conformance/harness.ts'
import { HAND_OFF_RUN, handOffSteps } from './model-hand-off-steps.ts'
import { runModel } from './model-run.ts'
import { type Sizes, step } from './model-steps.ts'

/** Few indexes, so that steps collide: the same partitions are leased, lost and settled again and again. */
const crowded: Sizes = { levels: 3, indexes: 4, longestArray: 6, batch: 4 }

/** Lanes longer than a store reads ahead, or rewrites in one transaction. */
const long: Sizes = { levels: 2, indexes: 4, longestArray: 5, batch: 1000 }
const LONG_RUN = 450

/** Shrinking runs the store thousands of times. To get it, take the reported seed and set this to false. */
const endOnFailure = true

/**
 * The runs of each property; the one with hand-offs alone runs as often as the crowded one. A store with a
 * server needs more time for a step.
 */
export interface Runs {
  readonly crowded: number
  readonly long: number
}

/**
 * Each test run tries other random steps. After changes to the engine or to a disk, multiply the runs by
 * this.
 */
const TIMES = Number(process.env['MODEL_RUNS'] ?? 1)

/** For any sequence of steps, a store and the model agree. */
export function describeModel(harness: StoreHarness, runs: Runs = { crowded: 60, long: 6 }): void {
  describe(`the model and the ${harness.name} store`, () => {
    test(
      'agree on few partitions, whatever happens in any order',
      async () => {
        await fc.assert(
          fc.asyncProperty(steps(crowded, 60), fc.boolean(), (taken, levelBarrier) =>
            runModel(harness, { ...testPolicy, levelBarrier }, taken),
          ),
          { numRuns: TIMES * runs.crowded, endOnFailure },
        )
      },
      TIMES * 300_000,
    )

    test(
      'agree on long lanes, whatever happens in any order',
      async () => {
        await fc.assert(
          fc.asyncProperty(steps(long, 30), fc.boolean(), (taken, levelBarrier) =>
            runModel(harness, { ...testPolicy, levelBarrier }, taken, LONG_RUN),
          ),
          { numRuns: TIMES * runs.long, endOnFailure },
        )
      },
      TIMES * 300_000,
    )

    test(
      'agree on levels that close and open again among hand-offs alone',
      async () => {
        await fc.assert(
          fc.asyncProperty(handOffSteps, (taken) =>
            runModel(harness, { ...testPolicy, levelBarrier: true }, taken, HAND_OFF_RUN),
          ),
          { numRuns: TIMES * runs.crowded, endOnFailure },
        )
      },
      TIMES * 300_000,
    )
  })
}

const steps = (sizes: Sizes, most: number) =>
  fc.array(step(sizes), { minLength: 5, maxLength: most, size: 'max' })
