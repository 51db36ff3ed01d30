import fc from 'fast-check'
import { batchedPull } from '../store/conformance/driver.ts'
import type { SettleStep, Step } from './model-steps.ts'

/**
 * Each partition and lease that a step names stands for this many: more than a store reads ahead of a lane.
 */
export const HAND_OFF_RUN = 6

type HandOffStep = Extract<Step, { kind: 'hand-off' }>

const handOff = (batch: Partial<HandOffStep>): Step => ({
  kind: 'hand-off',
  settles: [],
  renews: [],
  undos: [],
  callBacks: [],
  pulls: [],
  ...batch,
})

/** Most on one level, and most indexes are new. */
const callBacks = (often: number) =>
  fc
    .record({
      taskId: fc.constantFrom('red', 'red', 'red', 'red', 'green'),
      level: fc.constantFrom(often, often, 0, 1),
      index: fc.nat(60),
    })
    .map(({ taskId, level, index }) => [{ taskId, places: [{ level, index }], contradicts: false }])

const pulls = fc
  .constantFrom(1, 4 * HAND_OFF_RUN, 4 * HAND_OFF_RUN, 4 * HAND_OFF_RUN)
  .map((batch) => [batchedPull({ batch })])

const settleStep = (pick: number, outcome: SettleStep['outcome']): SettleStep => ({
  lease: { pick, forged: null },
  outcome,
  final: false,
  retryAfterMillis: 0,
  records: null,
})

/** The newest leases, sometimes without the very newest. */
const settles = fc
  .record({ from: fc.nat(1), count: fc.integer({ min: 3, max: 6 }) })
  .map(({ from, count }) => [Array.from({ length: count }, (_, at) => settleStep(-1 - from - at, 'done'))])

const releases = fc.nat(1).map((at) => [[settleStep(-1 - at, 'released')]])

/**
 * Only hand-offs, by workers that keep up: what was just pulled is settled, so lanes run empty, and barriers
 * open and close. No control request, expiry or retention comes in between, which would make a store reload
 * its cache. Each round leaves some of these out.
 */
const round = fc
  .tuple(
    callBacks(1).map((some) => handOff({ callBacks: some })),
    pulls.map((some) => handOff({ pulls: some })),
    settles.map((some) => handOff({ settles: some })),
    fc.constant<Step>({ kind: 'look' }),
    releases.map((some) => handOff({ settles: some })),
    callBacks(0).map((some) => handOff({ callBacks: some })),
    pulls.map((some) => handOff({ pulls: some })),
    settles.map((some) => handOff({ settles: some })),
    fc.record({ settles, pulls }).map(handOff),
  )
  .chain((steps) => fc.subarray(steps, { minLength: 5 }))

export const handOffSteps: fc.Arbitrary<Step[]> = fc
  .array(round, { minLength: 5, maxLength: 15, size: 'max' })
  .map((rounds) => rounds.flat())
