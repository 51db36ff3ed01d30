/**
 * Start-time fair queuing by records determines who is served first on a level.
 *
 * Every level has a virtual time, and every lane has a tag: where its next partition starts. The lane with the
 * smallest tag is served next. Its partition starts at max(virtual time, tag): the virtual time advances to
 * that start, and the tag to the start plus the cost of the partition. So lanes with work advance side by side
 * in records, however the work was split into partitions or arrays, and a lane gets no credit for the time in
 * which it had no work or could not be served. See docs/order.md for the bounds.
 *
 * Tags are 64-bit integers and stay bigint: a busy level passes 2^53 records in a few years.
 */
export interface LevelTime {
  /** V: the largest start handed out. Never decreases. */
  virtual: bigint
  /** The largest tag that a lane got by being served. The virtual time is set to it when the level drains. */
  maxFinishTag: bigint
}

const LARGEST_COST = 1_000_000_000

/** A cost by weight. An empty one still costs something, and a huge one lets its lane be served again. */
export function cost(recordCount: number, weight = 1): bigint {
  const records = Math.min(Math.max(recordCount, 1), LARGEST_COST)
  return BigInt(weight === 1 ? records : Math.max(1, Math.round(records / weight)))
}

/** Hands out the next partition of a lane with this tag. Returns the new tag. */
export function advance(time: LevelTime, tag: bigint, recordCount: number, weight = 1): bigint {
  const start = larger(time.virtual, tag)
  const finish = start + cost(recordCount, weight)
  time.virtual = start
  time.maxFinishTag = larger(time.maxFinishTag, finish)
  return finish
}

/** Nothing waits on the level: unequal shares are reset, and all lanes start equal. */
export function drain(level: LevelTime): void {
  level.virtual = larger(level.virtual, level.maxFinishTag)
}

export function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
