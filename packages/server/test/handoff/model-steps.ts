import fc from 'fast-check'
import type { TaskSettingsChange } from '../../src/handoff/rules/policy.ts'
import type { BatchedPull } from '../../src/handoff/store.ts'
import { DAY, MINUTE } from '../store/conformance/harness.ts'

/** Selects one of the leases given so far, unchanged or with a part of its id replaced. */
export interface LeasePick {
  /** Negative numbers count from the newest. */
  readonly pick: number
  readonly forged: 'secret' | 'term' | 'partition' | null
}

export interface SettleStep {
  readonly lease: LeasePick
  readonly outcome: 'done' | 'failed' | 'released'
  readonly final: boolean
  readonly retryAfterMillis: number | null
  readonly records: number | null
}

export interface CallBackStep {
  readonly taskId: string
  readonly places: readonly { readonly level: number; readonly index: number }[]
  /** Has other content for its first partition than all other call-backs. */
  readonly contradicts: boolean
}

export type Step =
  | {
      readonly kind: 'hand-off'
      readonly settles: readonly (readonly SettleStep[])[]
      readonly renews: readonly (readonly LeasePick[])[]
      readonly undos: readonly LeasePick[]
      readonly callBacks: readonly CallBackStep[]
      readonly pulls: readonly BatchedPull[]
    }
  | { readonly kind: 'pass'; readonly millis: number; readonly sweep: boolean }
  | { readonly kind: 'look' }
  | { readonly kind: 'restart' }
  | { readonly kind: 'maintain'; readonly retentionMillis: number }
  | { readonly kind: 'control'; readonly taskId: string; readonly verb: 'pause' | 'resume' | 'cancel' }
  | { readonly kind: 'control'; readonly taskId: string; readonly verb: 'seal' | 'skip-parked' }
  | { readonly kind: 'settings'; readonly taskId: string; readonly settings: TaskSettingsChange }
  | { readonly kind: 'release'; readonly instanceId: string }
  | { readonly kind: 'barrier'; readonly taskId: string; readonly enabled: boolean }
  | {
      readonly kind: 'retry'
      readonly taskId: string
      readonly level: number | null
      readonly named: { readonly level: number; readonly index: number } | null
      readonly done: boolean
    }

export interface Sizes {
  readonly levels: number
  readonly indexes: number
  readonly longestArray: number
  readonly batch: number
}

const taskId = fc.constantFrom('red', 'green', 'blue')

const lease: fc.Arbitrary<LeasePick> = fc.record({
  pick: fc.nat(40),
  forged: fc.constantFrom(...Array<null>(20).fill(null), 'secret', 'term', 'partition'),
})

const settle: fc.Arbitrary<SettleStep> = fc.record({
  lease,
  outcome: fc.constantFrom('done', 'done', 'failed', 'released'),
  final: fc.boolean(),
  retryAfterMillis: fc.constantFrom(null, null, 0, 3 * MINUTE),
  records: fc.constantFrom(null, 7, 100),
})

function callBack({ levels, indexes, longestArray }: Sizes): fc.Arbitrary<CallBackStep> {
  const place = fc.record({ level: fc.nat(levels - 1), index: fc.nat(indexes - 1) })
  return fc.record({
    taskId,
    places: fc
      .uniqueArray(place, {
        minLength: 1,
        maxLength: longestArray,
        selector: ({ level, index }) => `${level}-${index}`,
      })
      .map((places) => places.toSorted((a, b) => a.level - b.level)),
    contradicts: fc.constantFrom(false, false, false, false, true),
  })
}

/** Of partitions; which one follows from the place. */
export const tables = ['results.a', 'results.b', 'results.c'] as const

const names = (name: fc.Arbitrary<string>): fc.Arbitrary<string[] | null> =>
  fc.option(fc.uniqueArray(name, { minLength: 1, maxLength: 2 }), { freq: 2, nil: null })

function pull({ batch }: Sizes): fc.Arbitrary<BatchedPull> {
  return fc.record({
    instance: fc.constantFrom(null, 'v', 'w'),
    batch: fc.integer({ min: 1, max: batch }),
    records: fc.constantFrom(null, null, 0, 150),
    key: fc.constantFrom(null, null, 'k', 'l'),
    tables: names(fc.constantFrom(...tables)),
    tasks: names(taskId),
  })
}

const several = <T>(arbitrary: fc.Arbitrary<T>) => fc.array(arbitrary, { maxLength: 2 })

/**
 * Single requests of a kind are more frequent than several at once, as the order of steps is then easier to
 * read.
 */
function handOff(sizes: Sizes): fc.Arbitrary<Step> {
  const none = { settles: [], renews: [], undos: [], callBacks: [], pulls: [] }
  const alone = fc.oneof(
    { arbitrary: callBack(sizes).map((one) => ({ ...none, callBacks: [one] })), weight: 3 },
    { arbitrary: pull(sizes).map((one) => ({ ...none, pulls: [one] })), weight: 4 },
    { arbitrary: settle.map((one) => ({ ...none, settles: [[one]] })), weight: 4 },
    { arbitrary: lease.map((one) => ({ ...none, renews: [[one]] })), weight: 1 },
    { arbitrary: lease.map((one) => ({ ...none, undos: [one] })), weight: 1 },
  )
  const together = fc.record({
    settles: several(several(settle)),
    renews: several(several(lease)),
    undos: several(lease),
    callBacks: several(callBack(sizes)),
    pulls: several(pull(sizes)),
  })
  return fc
    .oneof({ arbitrary: alone, weight: 3 }, { arbitrary: together, weight: 2 })
    .map((batch) => ({ kind: 'hand-off', ...batch }))
}

export function step(sizes: Sizes): fc.Arbitrary<Step> {
  const named = fc.record({ level: fc.nat(sizes.levels - 1), index: fc.nat(sizes.indexes - 1) })
  const steps: fc.WeightedArbitrary<Step>[] = [
    { arbitrary: handOff(sizes), weight: 24 },
    {
      arbitrary: fc.record({
        kind: fc.constant('pass'),
        millis: fc.constantFrom(MINUTE, 3 * MINUTE, 10 * MINUTE, 30 * MINUTE),
        sweep: fc.constantFrom(true, true, false),
      }),
      weight: 8,
    },
    { arbitrary: fc.constant({ kind: 'restart' }), weight: 1 },
    {
      arbitrary: fc.record({ kind: fc.constant('maintain'), retentionMillis: fc.constantFrom(0, DAY) }),
      weight: 2,
    },
    {
      arbitrary: fc.record({
        kind: fc.constant('control'),
        taskId,
        verb: fc.constantFrom('pause', 'pause', 'resume', 'resume', 'resume', 'skip-parked', 'cancel'),
      }) as fc.Arbitrary<Step>,
      weight: 5,
    },
    {
      arbitrary: fc.record({ kind: fc.constant('control'), taskId, verb: fc.constant('seal') }),
      weight: 0.5,
    },
    {
      arbitrary: fc.record({
        kind: fc.constant('settings'),
        taskId,
        settings: fc.record(
          {
            maxLeases: fc.constantFrom(1, 2, 5, null),
            maxAttempts: fc.constantFrom(1, 2, 6, null),
            weight: fc.constantFrom(0.1, 3, null),
          },
          { requiredKeys: [] },
        ),
      }),
      weight: 2,
    },
    {
      arbitrary: fc.record({ kind: fc.constant('release'), instanceId: fc.constantFrom('v', 'w') }),
      weight: 1,
    },
    {
      arbitrary: fc.record({ kind: fc.constant('barrier'), taskId, enabled: fc.boolean() }),
      weight: 2,
    },
    {
      arbitrary: fc.record({
        kind: fc.constant('retry'),
        taskId,
        level: fc.option(fc.nat(sizes.levels - 1), { nil: null }),
        named: fc.option(named, { freq: 3, nil: null }),
        done: fc.boolean(),
      }),
      weight: 3,
    },
  ]
  return fc.oneof(...steps.map(({ arbitrary, weight }) => ({ arbitrary, weight: weight * 2 })))
}
