/**
 * Start-time fair queuing by records determines who is served first on a level.
 *
 * Every level has a virtual time, and every lane has two tags: the start of its next fresh partition, and
 * that of its next retry. A line that gets work starts at max(virtual time, tag). Handing out its next
 * partition advances the virtual time of the level to that start, and the tag by the cost of the partition.
 * Released partitions go before the fresh ones and were charged before. The smallest tag is served next, so
 * lanes with work advance side by side in records, however the work was split into partitions or arrays. See
 * docs/fair-order.md for the bounds.
 *
 * Tags are 64-bit integers and stay bigint: a busy level passes 2^53 records in a few years.
 */
export interface LevelTime {
  /** V: the largest start handed out. Never decreases. */
  virtual: bigint
  /** The largest finish handed out. The virtual time is set to it when the level drains. */
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

/** Hands out a partition with this start. Returns the start of the next partition in its line. */
export function advance(
  time: Pick<LevelTime, 'virtual'>,
  start: bigint,
  recordCount: number,
  weight: number,
): bigint {
  time.virtual = larger(time.virtual, start)
  return start + cost(recordCount, weight)
}

/** The same in the order of all lanes, which also keeps what was served. */
export function advanceLevel(level: LevelTime, start: bigint, recordCount: number, weight = 1): bigint {
  const finish = advance(level, start, recordCount, weight)
  level.served = larger(level.served, finish)
  return finish
}

/**
 * The tag of a line that was empty: it starts at the current virtual time and gets no credit for its idle
 * time.
 */
export const startOf = (time: Pick<LevelTime, 'virtual'>, tag: bigint): bigint => larger(time.virtual, tag)

/** Nothing waits on the level: unequal shares are reset, and all lanes start equal. */
export function drain(level: LevelTime): void {
  level.virtual = larger(level.virtual, level.served)
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
