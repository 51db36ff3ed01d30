import { type Tally, type TaskFacts, unfinishedOf } from './task-facts.ts'
import { isAtLimit } from './task-settings.ts'

/**
 * Start-time fair queuing by records determines who is served first on a level.
 *
 * Every level has a virtual time, and every queue of a lane has a tag: the start of its next partition. A
 * queue that gets work starts at max(virtual time, tag). Handing out its next partition advances the virtual
 * time of the level to that start, and the tag by the cost of the partition. The smallest tag is served next,
 * so queues with work advance side by side in records, however the work was split into partitions or arrays.
 * See docs/fair-order.md for the bounds.
 *
 * Tags are 64-bit integers and stay bigint: a busy level passes 2^53 records in a few years.
 */
export interface LevelTime {
  /** V: the largest start handed out. Never decreases. */
  virtual: bigint
  /** The largest finish handed out. V is set to it when the level drains. */
  served: bigint
}

const LARGEST_COST = 1_000_000_000

/**
 * The cost of a partition, divided by the weight of its task. An empty partition still costs something, and a
 * huge one is capped so that its lane is served again.
 */
export function costOf(recordCount: number, weight = 1): number {
  const records = Math.min(Math.max(recordCount, 1), LARGEST_COST)
  return weight === 1 ? records : Math.max(1, Math.round(records / weight))
}

export function cost(recordCount: number, weight = 1): bigint {
  return BigInt(costOf(recordCount, weight))
}

/** Hands out a partition with this start. Returns the start of the next partition in its queue. */
export function advance(level: LevelTime, start: bigint, recordCount: number, weight = 1): bigint {
  const finish = start + cost(recordCount, weight)
  level.virtual = larger(level.virtual, start)
  level.served = larger(level.served, finish)
  return finish
}

/** Nothing waits on the level: unequal shares are reset, and all lanes start equal. */
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

/** Whether a lane may be served now: it is open, and its task is below its lease limit. */
export function mayServe(
  task: Parameters<typeof isLaneOpen>[0] & Parameters<typeof isAtLimit>[0],
  level: number,
): boolean {
  return isLaneOpen(task, level) && !isAtLimit(task)
}

/** The fields of a lane that a barrier depends on. */
export interface BarrierLane {
  readonly partitions: Tally
  readonly parkedSkipped: boolean
}

/** Whether the lane keeps the barrier from opening the next level. */
export function holdsBarrier({ partitions, parkedSkipped }: BarrierLane): boolean {
  return unfinishedOf(partitions) > (parkedSkipped ? partitions.parked : 0)
}

/** Whether the lane holds the barrier until an operator acts: only parked partitions are left. */
export function holdsBarrierForGood(lane: BarrierLane): boolean {
  return holdsBarrier(lane) && unfinishedOf(lane.partitions) === lane.partitions.parked
}
