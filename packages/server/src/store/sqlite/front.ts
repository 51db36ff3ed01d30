import type { DatabaseSync } from 'node:sqlite'
import { compareRanked, drain, type LevelTime, type Ranked } from '../../handoff/rules/fair-order.ts'
import type { LaneEntry } from '../../handoff/rules/task-entry.ts'
import type { Books } from './books.ts'
import type { Candidate } from './candidate.ts'
import { ReadyRows } from './ready-rows.ts'

/** Read ahead at once; more each time, as long as nothing makes it useless. */
const FEWEST_AHEAD = 500
const MOST_AHEAD = 4000

/** New partitions that belong to the front join it; beyond this many its rear is left to the index again. */
const LONGEST = 8000

/**
 * Partitions that one look goes through where closed lanes are in the way. A task of 10,000 levels can have 160,000 in
 * front of everybody else until the steps of a pause have held them. So many take 5 to 20 ms.
 */
const PASSED_AT_MOST = 10_000

/** Before all others. */
const START: Ranked = { id: 0, lane: { level: -1 }, rank: 0n }

export interface Look {
  readonly first: Candidate[]
  /** There may be more behind what was passed over. */
  readonly isCutShort: boolean
}

type Reach = 'nothing' | 'some' | 'everything'

/**
 * The first ready partitions in the order of the hand-off, in memory.
 *
 * The index of ready partitions does not know what was put off: it still shows what was handed out, and does not yet
 * show what moved up. Here both are as they should be. Invariant: every ready partition of an open lane up to the last
 * one here is here, and so is every one that only moved up in memory. Of lanes that closed some may be here, too, and
 * are left out when their turn comes; whoever opens a lane that has ready ones has the front forgotten.
 */
export class Front {
  readonly #books: Books
  readonly #rows: ReadyRows
  #waiting: Candidate[] = []
  /** Those before have been handed out. */
  #at = 0
  #joined: Candidate[] = []
  #reach: Reach = 'nothing'
  #ahead = FEWEST_AHEAD
  #closed = new Set<LaneEntry>()
  /**
   * No partition before this one is ready in an open lane. Only looks past closed lanes begin here, so that each goes on
   * where the one before it was cut short, whatever was held or written in between.
   */
  #passed = START

  constructor(db: DatabaseSync, books: Books) {
    this.#books = books
    this.#rows = new ReadyRows(db, books.ledger)
  }

  /** Up to `limit` partitions of open lanes, the next to be handed out first. They stay until `advance`. */
  first(limit: number): Candidate[] {
    this.#order()
    this.#leaveOutClosed(limit)
    if (this.#waiting.length - this.#at < limit && !this.isWhole) this.#read(limit)
    return this.#waiting.slice(this.#at, this.#at + limit)
  }

  /** The closed lanes that `first` came across since this was asked: those that have ready partitions in the way. */
  takeClosed(): LaneEntry[] {
    const closed = [...this.#closed]
    this.#closed.clear()
    return closed
  }

  /** Begins anew behind what closed lanes have in the way. */
  passOver(atLeast: number): Look {
    // Also the rows of tasks, which say what lanes are open.
    this.#books.writeUp()
    const limit = Math.max(atLeast, this.#ahead)
    const found = this.#rows.firstOpen(this.#passed, PASSED_AT_MOST, limit)
    const behind = this.#rows.behind(this.#passed, PASSED_AT_MOST)
    this.#begin(found, found.length < limit && behind === undefined)
    this.#passed = this.#waiting[0] ?? behind ?? this.#passed
    return { first: this.#waiting.slice(0, atLeast), isCutShort: found.length < limit && !this.isWhole }
  }

  /** Lanes open that may have been passed over: the next look begins at the beginning again. */
  rewind(): void {
    this.#passed = START
  }

  /** So many of the first were handed out. */
  advance(count: number): void {
    this.#at += count
  }

  /** Everything that is ready and may be handed out is here. */
  get isWhole(): boolean {
    return this.#reach === 'everything'
  }

  /** To be told of every partition that becomes ready. True if it must join. */
  becomesReady(candidate: Ranked & { readonly lane: LaneEntry }): boolean {
    if (compareRanked(candidate, this.#passed) < 0 && this.#books.ledger.isOpen(candidate.lane))
      this.#passed = candidate
    if (this.#reach !== 'some') return this.isWhole
    const last = this.#waiting.at(-1)
    return last !== undefined && compareRanked(candidate, last) < 0
  }

  join(candidate: Candidate): void {
    this.#joined.push(candidate)
    if (this.#waiting.length - this.#at + this.#joined.length > LONGEST) this.#shorten()
  }

  /** The same for one whose row says that it is ready. */
  joinAgain(id: number): void {
    const candidate = this.#rows.byId(id)
    if (this.becomesReady(candidate)) this.join(candidate)
  }

  /** Partitions became ready, or ceased to be, in a way that is not followed here. */
  forget(): void {
    this.#books.writeUpPartitions()
    this.drop()
  }

  /** With the books, after a rollback. */
  drop(): void {
    this.#waiting = []
    this.#at = 0
    this.#joined = []
    this.#reach = 'nothing'
    this.#ahead = FEWEST_AHEAD
    this.#closed.clear()
  }

  /** The level's time for ranking: brought up to date if nothing on the level waits. */
  timeToRank(level: number): LevelTime {
    const time = this.#books.ledger.levelToAdvance(level)
    if (!this.#hasReady(level)) drain(time)
    return time
  }

  #hasReady(level: number): boolean {
    for (let at = this.#at; at < this.#waiting.length; at += 1)
      if (this.#waiting[at]?.lane.level === level) return true
    if (this.#joined.some(({ lane }) => lane.level === level)) return true
    if (this.isWhole) return false
    this.#books.writeUpPartitions()
    return this.#rows.isAnyOn(level)
  }

  #read(atLeast: number): void {
    this.#books.writeUpPartitions()
    const limit = Math.max(atLeast, this.#ahead)
    const found = this.#rows.first(limit)
    this.#begin(found, found.length < limit)
    this.#ahead = Math.min(2 * this.#ahead, MOST_AHEAD)
  }

  #begin(found: Candidate[], isAll: boolean): void {
    this.#waiting = this.#open(found)
    this.#at = 0
    this.#reach = isAll ? 'everything' : 'some'
  }

  #leaveOutClosed(limit: number): void {
    const { ledger } = this.#books
    const end = Math.min(this.#at + limit, this.#waiting.length)
    for (let at = this.#at; at < end; at += 1) {
      const candidate = this.#waiting[at]
      if (candidate === undefined || ledger.isOpen(candidate.lane)) continue
      this.#waiting = this.#open(this.#waiting.slice(this.#at))
      this.#at = 0
      return
    }
  }

  #open(candidates: Candidate[]): Candidate[] {
    const { ledger } = this.#books
    const open = candidates.filter(({ lane }) => ledger.isOpen(lane))
    if (open.length === candidates.length) return candidates
    for (const { lane } of candidates) if (!ledger.isOpen(lane)) this.#closed.add(lane)
    return open
  }

  /**
   * Mostly those that joined come last, so only what stands behind the first of them is sorted again. The rest stays
   * where it is: copying some thousand candidates for every batch is work for the collector.
   */
  #order(): void {
    if (this.#joined.length === 0) return
    this.#leaveOutHandedOut()
    const joined = this.#joined.sort(compareRanked)
    const behind = this.#waiting.splice(this.#placeOf(joined[0] as Candidate))
    const ordered = behind.length === 0 ? joined : [...behind, ...joined].sort(compareRanked)
    for (const candidate of ordered) this.#waiting.push(candidate)
    this.#joined = []
  }

  /** Only when they are half of all, so that each candidate is copied a few times at most. */
  #leaveOutHandedOut(): void {
    if (this.#at < Math.max(FEWEST_AHEAD, this.#waiting.length / 2)) return
    this.#waiting = this.#waiting.slice(this.#at)
    this.#at = 0
  }

  /** Where a candidate would stand among those that wait. */
  #placeOf(candidate: Candidate): number {
    let low = this.#at
    let high = this.#waiting.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareRanked(this.#waiting[middle] as Candidate, candidate) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  #shorten(): void {
    this.#books.writeUpPartitions()
    this.#order()
    this.#waiting.length = this.#at + MOST_AHEAD
    this.#reach = 'some'
  }
}
