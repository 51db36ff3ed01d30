import type { DatabaseSync } from 'node:sqlite'
import { compareRanked, drain, type LevelTime } from '../../handoff/fair-order.ts'
import type { Books } from './books.ts'
import { CANDIDATE_COLUMNS, type Candidate, type CandidateRow, candidateOf } from './candidate.ts'

type Row = [lane: number, rankText: string, fresh: number, ...candidate: CandidateRow]

/** Read ahead at once; more each time, as long as nothing makes it useless. */
const FEWEST_AHEAD = 500
const MOST_AHEAD = 4000

/** New partitions that belong to the front join it; beyond this many its rear is left to the index again. */
const LONGEST = 8000

type Reach = 'nothing' | 'some' | 'everything'

/**
 * The first ready partitions in the order of the hand-off, in memory.
 *
 * The index of ready partitions does not know what was put off: it still shows what was handed out, and does not yet
 * show what moved up. Here both are as they should be. Invariant: every ready partition up to the last one here is
 * here, and so is every one that only moved up in memory.
 */
export class Front {
  readonly #books: Books
  readonly #sql: ReturnType<typeof prepare>
  #waiting: Candidate[] = []
  /** Those before have been handed out. */
  #at = 0
  #joined: Candidate[] = []
  #reach: Reach = 'nothing'
  #ahead = FEWEST_AHEAD

  constructor(db: DatabaseSync, books: Books) {
    this.#books = books
    this.#sql = prepare(db)
  }

  /** Up to `limit` partitions, the next to be handed out first. They stay until `advance`. */
  first(limit: number): Candidate[] {
    this.#order()
    if (this.#waiting.length - this.#at < limit && !this.isWhole) this.#read(limit)
    return this.#waiting.slice(this.#at, this.#at + limit)
  }

  /** So many of the first were handed out. */
  advance(count: number): void {
    this.#at += count
  }

  /** Everything that is ready is here. */
  get isWhole(): boolean {
    return this.#reach === 'everything'
  }

  /** Whether a partition that becomes ready must join. */
  reaches(candidate: Candidate): boolean {
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
    const candidate = this.#candidate(this.#sql.byId.get(id) as unknown as Row)
    if (this.reaches(candidate)) this.join(candidate)
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
    return this.#sql.anyReady.get(level) !== undefined
  }

  #read(atLeast: number): void {
    this.#books.writeUpPartitions()
    const limit = Math.max(atLeast, this.#ahead)
    const rows = this.#sql.firstReady.all(limit) as unknown as Row[]
    this.#waiting = rows.map((row) => this.#candidate(row))
    this.#at = 0
    this.#reach = rows.length < limit ? 'everything' : 'some'
    this.#ahead = Math.min(2 * this.#ahead, MOST_AHEAD)
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

  #candidate([lane, rankText, fresh, ...row]: Row): Candidate {
    return candidateOf(row, this.#books.ledger.lane(lane), BigInt(rankText), fresh === 1)
  }
}

function prepare(db: DatabaseSync) {
  const columns = `lane, CAST(rank AS TEXT), fresh, ${CANDIDATE_COLUMNS}`
  const firstReady = db.prepare(
    `SELECT ${columns} FROM partition INDEXED BY partition_ready
     WHERE state = 'ready' ORDER BY level, rank, id LIMIT ? + 0`,
  )
  const byId = db.prepare(`SELECT ${columns} FROM partition WHERE id = ?`)
  // Rows as objects come as dictionaries, whose every access is a hash look-up; arrays do not.
  for (const statement of [firstReady, byId]) statement.setReturnArrays(true)
  return {
    firstReady,
    byId,
    anyReady: db.prepare(`SELECT 1 AS found FROM partition WHERE state = 'ready' AND level = ? LIMIT 1`),
  }
}
