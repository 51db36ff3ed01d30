import { type PartitionState, partitionStates, unfinishedStates } from '../rules/life-cycle.ts'
import { isLaneOpen, type Tally, type TaskFacts } from '../rules/task.ts'
import type { PartitionDetails, PartitionPage, PartitionQuery, TaskQuery } from './queries.ts'

/**
 * Limits on how much a view reads, on every store, so that no view gets slower as a task grows. The protocol
 * limits how much it returns.
 */

/**
 * The maximum number of tasks that a search reads per page. The page then says where it stopped. This
 * includes filtering tasks with parked partitions by state.
 */
export const TASKS_SEARCHED = 5000
/** Searches read large pages even if few tasks are requested, to avoid one query per task. */
export const tasksReadAtATime = ({ state, parked, search, limit }: TaskQuery) =>
  search === null && !(parked && state !== null) ? limit : Math.max(limit, ROWS_AT_A_TIME)

/**
 * The maximum number of rows that a page of partitions reads, however few of them match, and the number per
 * query.
 */
export const ROWS_READ = 2000
export const ROWS_AT_A_TIME = 200

/**
 * The states of rows that correspond to a state in a view. A waiting partition is ready or held, depending on
 * whether its lane is open and its table is not paused: rows of paused tables are held. In a cancelled task, everything unfinished counts as cancelled.
 */
function storedStates(
  task: Pick<TaskFacts, 'paused' | 'cancelled' | 'levelBarrier' | 'openLevel'>,
  level: number,
  shown: PartitionState | null,
  hasPausedTables: boolean,
): readonly PartitionState[] {
  if (shown === null) return partitionStates
  if (task.cancelled) {
    if (shown === 'done') return ['done']
    return shown === 'cancelled' ? [...unfinishedStates, 'cancelled'] : []
  }
  if (shown !== 'ready' && shown !== 'held') return [shown]
  if (hasPausedTables && isLaneOpen(task, level)) return [shown]
  return isLaneOpen(task, level) === (shown === 'ready') ? ['ready', 'held'] : []
}

/** An index above all possible ones: the lane has been read completely. */
const LANE_END = Number.MAX_SAFE_INTEGER

/** Larger than any count. */
const UNKNOWN = Number.POSITIVE_INFINITY

interface LaneOnTheWay {
  readonly level: number
  readonly partitions: Tally
}

/** The fields of a partition in a lane whose level is known. */
type RowOfLane = Omit<PartitionDetails, 'level'>

/** The rows of a lane that a store must read next, ordered by index. */
interface RowsToRead {
  readonly after: number
  readonly limit: number
  /** Only parked rows are needed, so a store may use an index on them. */
  readonly onlyParked: boolean
}

/**
 * Collects a page of partitions across the lanes of a task, by level and index, at a bounded cost. It tells
 * the store what to read and receives what was found.
 */
export class PartitionWalk {
  readonly #hasPausedTables: boolean
  readonly #countsAreExact: boolean
  readonly #facts: TaskFacts
  readonly #query: PartitionQuery
  readonly #partitions: PartitionDetails[] = []
  #at: PartitionQuery['after']
  #budget = ROWS_READ
  #isThrough = false
  #isFull = false
  #level = -1
  /** How many of the lane's partitions can still match, if known. */
  #left = UNKNOWN
  #limit = 0
  #wanted: readonly PartitionState[] = []

  /**
   * Set `countsAreExact` if the tallies of lanes agree with the rows. If they may lag, a lease that is newer
   * than the tally could be mistaken for the last match of a lane, and older ones after it would never be
   * returned.
   */
  constructor(facts: TaskFacts, query: PartitionQuery, countsAreExact: boolean, hasPausedTables = false) {
    this.#hasPausedTables = hasPausedTables
    // Tallies do not tell how many waiting partitions are held because of their table.
    this.#countsAreExact = countsAreExact && !hasPausedTables
    this.#facts = facts
    this.#query = query
    this.#at = query.after
  }

  /** The minimum level of the next lane to read; null when the page is complete. */
  get nextLevel(): number | null {
    if (this.#isThrough || this.#isFull || this.#budget <= 0) return null
    if (this.#at === null) return this.#query.level ?? 0
    const next = this.#at.index === LANE_END ? this.#at.level + 1 : this.#at.level
    return Math.max(this.#query.level ?? 0, next)
  }

  /** Enters the lane that was found, if any. Returns null if nothing needs to be read. */
  enter(lane: LaneOnTheWay | undefined): RowsToRead | null {
    const { level: onlyLevel, indexes = null, state, limit } = this.#query
    if (lane === undefined || (onlyLevel !== null && lane.level !== onlyLevel)) {
      this.#isThrough = true
      return null
    }
    const { level, partitions } = lane
    const after = level === this.#at?.level ? this.#at.index : (indexes?.first ?? 0) - 1
    this.#wanted = storedStates(this.#facts, level, state, this.#hasPausedTables)
    const counted = this.#wanted.includes('held') ? [...this.#wanted, 'ready' as const] : this.#wanted
    const matching = counted.reduce((sum, one) => sum + partitions[one], 0)
    if (level !== this.#level)
      this.#left = this.#countsAreExact && after === -1 && indexes === null ? matching : UNKNOWN
    this.#level = level
    if (matching === 0) {
      this.#budget -= 1
      this.#at = { level, index: LANE_END }
      return null
    }
    const missing = limit + 1 - this.#partitions.length
    this.#limit = Math.min(this.#budget, state === null ? missing : ROWS_AT_A_TIME)
    return {
      after,
      limit: this.#limit,
      onlyParked: this.#wanted.length === 1 && this.#wanted[0] === 'parked',
    }
  }

  /**
   * A page is full when one more match is found than it holds, so that the last page does not point to an
   * empty one.
   */
  take(rows: readonly RowOfLane[]): void {
    const level = this.#level
    this.#budget -= rows.length + 1
    const last = rows.length < this.#limit ? LANE_END : (rows.at(-1)?.index ?? LANE_END)
    this.#at = { level, index: last }
    const lastIndex = this.#query.indexes?.last ?? LANE_END
    for (const row of rows) {
      if (row.index > lastIndex) {
        this.#isThrough = true
        return
      }
      if (!this.#wanted.includes(row.state)) continue
      if (this.#partitions.length === this.#query.limit) {
        this.#isFull = true
        this.#at = placeOf(this.#partitions.at(-1))
        return
      }
      this.#partitions.push({ ...row, level })
      this.#left -= 1
    }
    // The leases of a long lane are mostly at its start. Once all matches are found, the rest need not be
    // read.
    if (this.#left === 0) this.#at = { level, index: LANE_END }
  }

  get page(): PartitionPage {
    return { facts: this.#facts, partitions: this.#partitions, next: this.#isThrough ? null : this.#at }
  }
}

const placeOf = (partition: PartitionDetails | undefined): PartitionQuery['after'] =>
  partition === undefined ? null : { level: partition.level, index: partition.index }
