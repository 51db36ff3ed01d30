import { advance, drain, type LevelTime } from '../../src/handoff/rules/fair-order.ts'
import { costOf, type FairnessEvent } from './fairness.ts'

/** A rule for the order on one level, without a store around it. */
export interface Scheduler {
  callBack(task: string, recordCounts: readonly number[]): void
  next(): { readonly task: string; readonly records: number } | undefined
}

interface Waiting {
  readonly task: string
  readonly records: number
  readonly rank: bigint
}

function takeFirst(waiting: Waiting[]): Waiting | undefined {
  const first = waiting.reduce<Waiting | undefined>(
    (best, one) => (best === undefined || one.rank < best.rank ? one : best),
    undefined,
  )
  if (first !== undefined) waiting.splice(waiting.indexOf(first), 1)
  return first
}

/** The rule of the design, with the functions of the core: a lane is a queue with one tag. */
export function fairScheduler(): Scheduler {
  const level: LevelTime = { virtual: 0n, served: 0n }
  const lanes = new Map<string, { tag: bigint; waiting: number[] }>()
  const withWork = () => [...lanes].filter(([, { waiting }]) => waiting.length > 0)
  return {
    callBack(task, recordCounts) {
      const lane = lanes.get(task) ?? { tag: 0n, waiting: [] }
      lanes.set(task, lane)
      if (withWork().length === 0) drain(level)
      lane.waiting.push(...recordCounts)
    },
    next() {
      const [first] = withWork().toSorted(([, a], [, b]) => (a.tag < b.tag ? -1 : a.tag > b.tag ? 1 : 0))
      const records = first?.[1].waiting.shift()
      if (first === undefined || records === undefined) return undefined
      const [task, lane] = first
      lane.tag = advance(level, lane.tag, records)
      return { task, records }
    },
  }
}

/** Naive: first come, first served. A large task starves all later ones. */
export function firstComeFirstServed(): Scheduler {
  const waiting: { task: string; records: number }[] = []
  return {
    callBack: (task, recordCounts) => waiting.push(...recordCounts.map((records) => ({ task, records }))),
    next: () => waiting.shift(),
  }
}

/** Naive: every array starts at the head of what waits. Tasks with many small arrays gain. */
export function startAtTheHead(): Scheduler {
  const waiting: Waiting[] = []
  return {
    callBack(task, recordCounts) {
      let rank = waiting.reduce((least, one) => (one.rank < least ? one.rank : least), waiting[0]?.rank ?? 0n)
      for (const records of recordCounts) {
        waiting.push({ task, records, rank })
        rank += BigInt(costOf(records))
      }
    },
    next: () => takeFirst(waiting),
  }
}

export type SchedulerStep =
  | { readonly kind: 'call-back'; readonly task: string; readonly recordCounts: readonly number[] }
  | { readonly kind: 'pull'; readonly count: number }

/** Runs a scheduler on arrivals and pulls, and returns the events for the fairness check. */
export function play(
  scheduler: Scheduler,
  steps: readonly SchedulerStep[],
): { events: FairnessEvent[]; largest: Map<string, number> } {
  const events: FairnessEvent[] = []
  const largest = new Map<string, number>()
  const waiting = new Map<string, number>()
  const change = (task: string, by: number) => {
    const count = (waiting.get(task) ?? 0) + by
    waiting.set(task, count)
    events.push({ kind: 'work', task, has: count > 0 })
  }
  for (const step of steps) {
    if (step.kind === 'call-back') {
      scheduler.callBack(step.task, step.recordCounts)
      for (const records of step.recordCounts)
        largest.set(step.task, Math.max(largest.get(step.task) ?? 0, costOf(records)))
      change(step.task, step.recordCounts.length)
      continue
    }
    for (let pulled = 0; pulled < step.count; pulled += 1) {
      const given = scheduler.next()
      if (given === undefined) break
      events.push({ kind: 'given', task: given.task, cost: costOf(given.records) })
      change(given.task, -1)
    }
  }
  return { events, largest }
}
