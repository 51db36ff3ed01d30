import { type Tally, type TaskFacts, unfinishedOf } from './task-facts.ts'
import { isAtLimit } from './task-settings.ts'

/**
 * Start-time fair queuing by records: who goes first on a level.
 *
 * Every level has a virtual time, every line of a lane a tag: where its next partition starts. A line that gets work
 * starts at max(virtual time, tag); handing out its next partition moves the level's time to that start and the tag on by
 * the partition's cost. The smallest tag is next, so lines that have work advance side by side in records, however the
 * work was cut into partitions or arrays. See docs/fair-order.md for the bounds.
 *
 * Tags are 64-bit integers and stay bigint: a busy level passes 2^53 records in a few years.
 */
export interface LevelTime {
  /** V: the largest start handed out. Never decreases. */
  virtual: bigint
  /** The largest finish handed out: where V goes when the level drains. */
  served: bigint
}

const LARGEST_COST = 1_000_000_000

/** With a weight, in records of a task with weight 1. An empty partition still costs a hand-out; a giant one must not push its lane out of sight. */
export function costOf(recordCount: number, weight = 1): number {
  const records = Math.min(Math.max(recordCount, 1), LARGEST_COST)
  return weight === 1 ? records : Math.max(1, Math.round(records / weight))
}

export function cost(recordCount: number, weight = 1): bigint {
  return BigInt(costOf(recordCount, weight))
}

/** A partition that starts here is handed out. Returns where the next one of its line starts. */
export function advance(level: LevelTime, start: bigint, recordCount: number, weight = 1): bigint {
  const finish = start + cost(recordCount, weight)
  level.virtual = larger(level.virtual, start)
  level.served = larger(level.served, finish)
  return finish
}

/** Nothing on the level waits: what its lanes were owed is settled, and all start equal. */
export function drain(level: LevelTime): void {
  level.virtual = larger(level.virtual, level.served)
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

/** Whether pulls may take from a lane. */
export function isLaneOpen(
  task: Pick<TaskFacts, 'paused' | 'cancelled' | 'levelBarrier' | 'openLevel'>,
  level: number,
): boolean {
  if (task.paused || task.cancelled) return false
  return !task.levelBarrier || (task.openLevel !== null && level <= task.openLevel)
}

/** The same now: not while as many of its partitions are leased as may be. */
export function mayServe(
  task: Parameters<typeof isLaneOpen>[0] & Parameters<typeof isAtLimit>[0],
  level: number,
): boolean {
  return isLaneOpen(task, level) && !isAtLimit(task)
}

/** What of a lane a barrier goes by. */
export interface BarrierLane {
  readonly partitions: Tally
  readonly parkedSkipped: boolean
}

/** What keeps a barrier from opening the next level. */
export function holdsBarrier({ partitions, parkedSkipped }: BarrierLane): boolean {
  return unfinishedOf(partitions) > (parkedSkipped ? partitions.parked : 0)
}

/** The same, where it takes an operator to open it: nothing but what is parked is left there. */
export function holdsBarrierForGood(lane: BarrierLane): boolean {
  return holdsBarrier(lane) && unfinishedOf(lane.partitions) === lane.partitions.parked
}
