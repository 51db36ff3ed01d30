import { type PartitionState, partitionStates, unfinishedStates } from '../rules/life-cycle.ts'
import { isLaneOpen, type Tally, type TaskFacts } from '../rules/task.ts'
import { filterOf, type PartitionFilter } from './partition-filter.ts'
import type {
  PartitionDetails,
  PartitionPage,
  PartitionPart,
  PartitionPosition,
  PartitionQuery,
  PartitionRow,
  TaskQuery,
} from './queries.ts'

// Limits on how much a view reads, so that no view gets slower as a task grows. The protocol limits how much it
// returns.

/** Read per page of a search. The page then says where it stopped. */
export const TASKS_SEARCHED = 5000
/** Searches read large pages even if few tasks are requested, to avoid one query per task. */
export const tasksReadAtATime = ({ state, parked, search, limit }: TaskQuery) =>
  search === null && !(parked && state !== null) ? limit : Math.max(limit, ROWS_AT_A_TIME)

/** Of a page of partitions, however few of them match; and per query. */
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

const BEGIN = { level: 0, at: -1 }

/** Larger than any count. */
const UNKNOWN = Number.POSITIVE_INFINITY

interface LaneOnTheWay {
  readonly level: number
  readonly partitions: Tally
  /** After this id, what waits was never handed out. */
  readonly cursor: number
  readonly tail: number
}

/** The rows of a lane that a store must read next, ordered by index, or by id if they are fresh. */
export type RowsToRead =
  | {
      readonly by: 'index'
      readonly state: 'begun' | 'parked' | null
      readonly failure?: string
      readonly after: number
      readonly last: number
      readonly limit: number
    }
  | { readonly by: 'arrival'; readonly after: number; readonly last: number; readonly limit: number }

/** The states of the rows of each part, whether their lane is open or not. */
const statesOfPart: Readonly<Record<PartitionPart, readonly PartitionState[]>> = {
  all: partitionStates,
  begun: unfinishedStates,
  fresh: ['ready', 'held'],
  finished: ['done', 'cancelled'],
}

/** Of a cancelled task everything is finished. */
function partsOf(
  { cancelled }: TaskFacts,
  { state, order, reason = null }: PartitionQuery,
): readonly PartitionPart[] {
  if (cancelled) return ['all']
  // What was never handed out has not failed.
  if (order === 'unfinished') return reason === null ? ['begun', 'fresh', 'finished'] : ['begun', 'finished']
  return state === 'leased' || state === 'delayed' || state === 'parked' ? ['begun'] : ['all']
}

/** A row as views show it. */
function partitionDetails(
  row: PartitionRow,
  level: number,
  pausedTables: ReadonlySet<string>,
): PartitionDetails {
  const isHeld = row.state === 'ready' && pausedTables.has(row.computeTable)
  return { ...row, level, state: isHeld ? 'held' : row.state }
}

const isFresh = ({ state, dueAt }: PartitionRow): boolean => state === 'ready' && dueAt === null

/**
 * Collects a page of partitions across the lanes of a task, by level and index, at a bounded cost. It tells
 * the store what to read and receives what was found. Finished ones last, it walks through the lanes three
 * times: for what was handed out and is not finished, for what waits and was never handed out, and for the
 * rest. The disk has an index of the first, and the second follow the cursor of their lane, so that neither
 * costs more when nearly everything is done.
 */
export class PartitionWalk {
  readonly #facts: TaskFacts
  readonly #query: PartitionQuery
  readonly #pausedTables: ReadonlySet<string>
  readonly #filter: PartitionFilter
  readonly #partitions: PartitionDetails[] = []
  readonly #parts: readonly PartitionPart[]
  #part = 0
  /** The last row seen of this part. */
  #at: Omit<PartitionPosition, 'part'> | null = null
  #lastShown: PartitionPosition | null = null
  #budget = ROWS_READ
  #isFull = false
  #lane: LaneOnTheWay | null = null
  /** How many of the lane's partitions can still match, if known. */
  #left = UNKNOWN
  #read: RowsToRead | null = null
  #wanted: readonly PartitionState[] = []

  constructor(facts: TaskFacts, query: PartitionQuery, pausedTables: ReadonlySet<string>) {
    this.#facts = facts
    this.#query = query
    this.#pausedTables = pausedTables
    this.#filter = filterOf(query)
    this.#parts = partsOf(facts, query)
    const { after } = query
    const part = after === null ? -1 : this.#parts.indexOf(after.part)
    // A task that was cancelled in between has other parts: its list starts again.
    if (part === -1) return
    this.#part = part
    this.#at = after
  }

  /** The minimum level of the next lane to read; null when the page is complete. */
  get nextLevel(): number | null {
    if (this.#isFull || this.#budget <= 0) return null
    for (; this.#part < this.#parts.length; this.#part += 1, this.#at = null) {
      const { level, at } = this.#at ?? BEGIN
      const next = this.#filter.levels(at === LANE_END ? level + 1 : level)
      if (next !== null) return next.first
    }
    return null
  }

  /** Enters the lane that was found, if any. Returns null if nothing needs to be read. */
  enter(lane: LaneOnTheWay | undefined): RowsToRead | null {
    const isChosen = lane !== undefined && this.#filter.levels(lane.level)?.first === lane.level
    if (!isChosen) {
      this.#budget -= 1
      this.#at = { level: lane?.level ?? LANE_END, at: LANE_END }
      return null
    }
    const isBegin = lane.level !== this.#at?.level
    const { state } = this.#query
    this.#lane = lane
    const states = statesOfPart[this.#partName]
    const shownAs = storedStates(this.#facts, lane.level, state, this.#pausedTables.size > 0)
    this.#wanted = shownAs.filter((one) => states.includes(one))
    const counted = this.#wanted.includes('held') ? [...this.#wanted, 'ready' as const] : this.#wanted
    const matching = counted.reduce((sum, one) => sum + lane.partitions[one], 0)
    if (isBegin) this.#left = this.#countsAreExact ? matching : UNKNOWN
    this.#read = matching === 0 ? null : this.#nextRows(lane, isBegin ? null : (this.#at?.at ?? null))
    if (this.#read === null) this.#endLane()
    return this.#read
  }

  /** One more match shows that it is full, so that the last page does not point to an empty one. */
  take(rows: readonly PartitionRow[]): void {
    const [lane, read] = [this.#lane, this.#read]
    if (lane === null || read === null) return
    const { level } = lane
    const part = this.#partName
    const placeOf = (row: PartitionRow) => (read.by === 'index' ? row.index : row.id)
    const last = rows.at(-1)
    const isThrough = rows.length < read.limit || last === undefined
    this.#budget -= rows.length + 1
    this.#at = { level, at: !isThrough ? placeOf(last) : read.by === 'index' ? read.last : LANE_END }
    for (const row of rows) {
      const details = this.#matching(row, level)
      if (details === null) continue
      if (this.#partitions.length === this.#query.limit) {
        this.#isFull = true
        return
      }
      this.#partitions.push(details)
      this.#lastShown = { part, level, at: placeOf(row) }
      this.#left -= 1
    }
    // What is done is mostly at the start of a lane. The rest need not be read once all are found.
    if (this.#left === 0) this.#at = { level, at: LANE_END }
  }

  get page(): PartitionPage {
    const stopped = { part: this.#partName, ...(this.#at ?? BEGIN) }
    const isThrough = this.#part === this.#parts.length
    const next = this.#isFull ? this.#lastShown : isThrough ? null : stopped
    return { facts: this.#facts, partitions: this.#partitions, next }
  }

  get #partName(): PartitionPart {
    return this.#parts[this.#part] ?? 'all'
  }

  /** The tally does not tell which rows were handed out before, or are held because of their table. */
  get #countsAreExact(): boolean {
    const { hasEveryIndex, hasName } = this.#filter
    const isOfPart =
      this.#partName === 'all' || this.#partName === 'finished' || !this.#wanted.includes('ready')
    const isFiltered = !hasEveryIndex || hasName !== null || this.#reason !== null
    return isOfPart && !isFiltered && this.#pausedTables.size === 0
  }

  get #reason(): string | null {
    return this.#query.reason ?? null
  }

  #nextRows(lane: LaneOnTheWay, at: number | null): RowsToRead | null {
    const part = this.#partName
    const { indexes, hasEveryIndex, hasName } = this.#filter
    const isSelective =
      this.#query.state !== null ||
      hasName !== null ||
      this.#reason !== null ||
      part === 'finished' ||
      (part === 'fresh' && !hasEveryIndex)
    const missing = this.#query.limit + 1 - this.#partitions.length
    const limit = Math.min(this.#budget, isSelective ? ROWS_AT_A_TIME : missing)
    if (part === 'fresh' && hasEveryIndex)
      return { by: 'arrival', after: at ?? lane.cursor, last: lane.tail, limit }
    const run = indexes(at === null ? 0 : at + 1)
    if (run === null) return null
    const onlyParked = this.#wanted.length === 1 && this.#wanted[0] === 'parked'
    const state = onlyParked ? 'parked' : part === 'begun' ? 'begun' : null
    const failure = this.#reason === null || state === 'begun' ? {} : { failure: this.#reason }
    return { by: 'index', state, ...failure, after: run.first - 1, last: run.last, limit }
  }

  #matching(row: PartitionRow, level: number): PartitionDetails | null {
    const part = this.#partName
    if ((part === 'begun' && isFresh(row)) || (part === 'fresh' && !isFresh(row))) return null
    if (this.#reason !== null && row.failure !== this.#reason) return null
    const details = partitionDetails(row, level, this.#pausedTables)
    const { hasName } = this.#filter
    return this.#wanted.includes(details.state) && (hasName === null || hasName(details)) ? details : null
  }

  #endLane(): void {
    this.#budget -= 1
    this.#at = { level: this.#lane?.level ?? 0, at: LANE_END }
  }
}
