import { isLaneOpen } from '../rules/lane-rules.ts'
import { type PartitionState, partitionStates, unfinishedStates } from '../rules/life-cycle.ts'
import type { Tally, TaskFacts } from '../rules/task-facts.ts'
import type { PartitionPage, PartitionQuery, PartitionRecord, TaskQuery } from './records.ts'

/** How much a view reads, on every store: none costs more as a task grows. How much it shows, the protocol says. */

/** A search, also one for a state among those with parked partitions, reads at most so many tasks per page, and says where it stopped. */
export const TASKS_SEARCHED = 5000
/** However few are wanted: a search for one of five thousand would look five thousand times. */
export const tasksReadAtATime = ({ state, parked, search, limit, tables }: TaskQuery) =>
  search === null && tables == null && !(parked && state !== null) ? limit : Math.max(limit, ROWS_AT_A_TIME)

/** A page of partitions reads at most so many rows, however few of them match, and so many at a time. */
export const ROWS_READ = 2000
export const ROWS_AT_A_TIME = 200

/**
 * The stored states behind one that is shown: a waiting partition is called ready or held by
 * whether its lane is open, and of a cancelled task everything unfinished counts as cancelled.
 */
function storedStates(
  task: Pick<TaskFacts, 'paused' | 'cancelled' | 'levelBarrier' | 'openLevel'>,
  level: number,
  shown: PartitionState | null,
): readonly PartitionState[] {
  if (shown === null) return partitionStates
  if (task.cancelled) {
    if (shown === 'done') return ['done']
    return shown === 'cancelled' ? [...unfinishedStates, 'cancelled'] : []
  }
  if (shown !== 'ready' && shown !== 'held') return [shown]
  return isLaneOpen(task, level) === (shown === 'ready') ? ['ready', 'held'] : []
}

/** Behind the last index that there can be: the lane is through. */
const LANE_END = Number.MAX_SAFE_INTEGER

/** More than there can be. */
const UNKNOWN = Number.POSITIVE_INFINITY

interface LaneOnTheWay {
  readonly level: number
  readonly partitions: Tally
}

/** What is read of a partition in a lane whose level is known. */
type RowOfLane = Omit<PartitionRecord, 'level'>

/** The rows of a lane that a store has to read next: in the order of their index, and of any state. */
interface RowsToRead {
  readonly after: number
  readonly limit: number
  /** No others are needed, so who has an index of them may read by it. */
  readonly onlyParked: boolean
}

/**
 * The way of a page through the lanes of a task, by level and index, at the same cost for any size. A store asks it what
 * to read and tells it what was found.
 */
export class PartitionWalk {
  readonly #countsAreExact: boolean
  readonly #facts: TaskFacts
  readonly #query: PartitionQuery
  readonly #partitions: PartitionRecord[] = []
  #at: PartitionQuery['after']
  #budget = ROWS_READ
  #isThrough = false
  #isFull = false
  #level = -1
  /** How many of the lane's partitions can still match, where that is known. */
  #left = UNKNOWN
  #limit = 0
  #wanted: readonly PartitionState[] = []

  /**
   * `countsAreExact` when the tallies of lanes say the same as the rows. Where they may lag, a lease that is newer than
   * its tally would be taken for the last one of a lane, and an older one behind it never be shown.
   */
  constructor(facts: TaskFacts, query: PartitionQuery, countsAreExact: boolean) {
    this.#countsAreExact = countsAreExact
    this.#facts = facts
    this.#query = query
    this.#at = query.after
  }

  /** The lowest lane from this level on comes next; null when the page is made. */
  get nextLevel(): number | null {
    if (this.#isThrough || this.#isFull || this.#budget <= 0) return null
    if (this.#at === null) return this.#query.level ?? 0
    const next = this.#at.index === LANE_END ? this.#at.level + 1 : this.#at.level
    return Math.max(this.#query.level ?? 0, next)
  }

  /** Comes to the lane that was found, or to none. Null where nothing is to be read. */
  enter(lane: LaneOnTheWay | undefined): RowsToRead | null {
    const { level: onlyLevel, state, limit } = this.#query
    if (lane === undefined || (onlyLevel !== null && lane.level !== onlyLevel)) {
      this.#isThrough = true
      return null
    }
    const { level, partitions } = lane
    const after = level === this.#at?.level ? this.#at.index : -1
    this.#wanted = storedStates(this.#facts, level, state)
    const matching = this.#wanted.reduce((sum, one) => sum + partitions[one], 0)
    if (level !== this.#level) this.#left = this.#countsAreExact && after === -1 ? matching : UNKNOWN
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

  /** A page is full when one more is found than it holds: whoever has the last page is not sent on to an empty one. */
  take(rows: readonly RowOfLane[]): void {
    const level = this.#level
    this.#budget -= rows.length + 1
    const last = rows.length < this.#limit ? LANE_END : (rows.at(-1)?.index ?? LANE_END)
    this.#at = { level, index: last }
    for (const row of rows) {
      if (!this.#wanted.includes(row.state)) continue
      if (this.#partitions.length === this.#query.limit) {
        this.#isFull = true
        this.#at = placeOf(this.#partitions.at(-1))
        return
      }
      this.#partitions.push({ ...row, level })
      this.#left -= 1
    }
    // The leases of a long lane are mostly at its beginning: the rest of it need not be read to know that.
    if (this.#left === 0) this.#at = { level, index: LANE_END }
  }

  get page(): PartitionPage {
    return { facts: this.#facts, partitions: this.#partitions, next: this.#isThrough ? null : this.#at }
  }
}

const placeOf = (partition: PartitionRecord | undefined): PartitionQuery['after'] =>
  partition === undefined ? null : { level: partition.level, index: partition.index }
