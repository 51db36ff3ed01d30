/**
 * Start-time fair queuing by records: who goes first on a level.
 *
 * Every level has a virtual time, every lane a finish tag. A partition that becomes eligible gets
 * the rank max(virtual time, the lane's tag), and the tag moves on by the partition's cost; pulls
 * take the smallest rank. Lanes that have work therefore advance side by side in records, however
 * the work was cut into partitions or arrays. See docs/fair-order.md for the bounds.
 *
 * Ranks are 64-bit integers and stay bigint: a busy level passes 2^53 records in a few years.
 */
export interface LevelTime {
  /** V: the largest rank handed out for the first time. Never decreases. */
  virtual: bigint
  /** The largest finish tag among partitions handed out: where V goes when the level drains. */
  served: bigint
}

export interface LaneTags {
  /** F: where the next partition of this lane would start. */
  finish: bigint
  /** The second tag, for partitions that failed or expired, so that retries have a share of their own. */
  retryFinish: bigint
}

const LARGEST_COST = 1_000_000_000

/** An empty partition still costs a hand-out; a giant one must not push its lane out of sight. */
export function cost(recordCount: number): bigint {
  return BigInt(Math.min(Math.max(recordCount, 1), LARGEST_COST))
}

export function rankFresh(level: LevelTime, lane: LaneTags, recordCount: number): bigint {
  const rank = larger(level.virtual, lane.finish)
  lane.finish = rank + cost(recordCount)
  return rank
}

export function rankRetry(level: LevelTime, lane: LaneTags, recordCount: number): bigint {
  const rank = larger(level.virtual, lane.retryFinish)
  lane.retryFinish = rank + cost(recordCount)
  return rank
}

/** A first hand-out moves the level's time; a retry or a released partition does not. */
export function advance(level: LevelTime, rank: bigint, recordCount: number): void {
  level.virtual = larger(level.virtual, rank)
  level.served = larger(level.served, rank + cost(recordCount))
}

/**
 * Nothing on the level waits: whatever its lanes were owed is settled, and all start equal.
 * Asked just before ranking instead of at the pull that drained the level: it costs pulls nothing, and makes a difference
 * only where a partition was given back in between, which then waits at its old rank like any other. What it comes to has
 * to be kept with what is ranked: whoever is ranked next does not find the level drained.
 */
export function drain(level: LevelTime): void {
  level.virtual = larger(level.virtual, level.served)
}

/** Partitions that leave the order unserved give back the place they had taken. */
export function setBack(lane: LaneTags, firstWaitingRank: bigint): void {
  if (firstWaitingRank < lane.finish) lane.finish = firstWaitingRank
}

/** A partition that waits, as far as its place in the order goes. */
export interface Ranked {
  readonly id: number
  readonly lane: { readonly level: number }
  readonly rank: bigint
}

/** The order of the hand-off. */
export function compareRanked(a: Ranked, b: Ranked): number {
  if (a.lane.level !== b.lane.level) return a.lane.level - b.lane.level
  if (a.rank !== b.rank) return a.rank < b.rank ? -1 : 1
  return a.id - b.id
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
