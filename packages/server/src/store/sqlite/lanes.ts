import type { DatabaseSync } from 'node:sqlite'
import { rankFresh, setBack } from '../../handoff/rules/fair-order.ts'
import { holdsBarrier } from '../../handoff/rules/lane-rules.ts'
import { next } from '../../handoff/rules/life-cycle.ts'
import type { LaneEntry, TaskEntry } from '../../handoff/rules/task-entry.ts'
import type { Books } from './books.ts'
import { CANDIDATE_COLUMNS, type Candidate, type CandidateRow, candidateOf } from './candidate.ts'
import type { Front } from './front.ts'
import type { Ledger } from './ledger.ts'
import { arrayQuery, query } from './query.ts'

/**
 * Opening and closing lanes without rewriting them.
 *
 * Of an open lane only a window of partitions is ready; those behind it are held and follow as the
 * window empties, ranked in the order of their call-back. So the index that pulls read stays small
 * whatever the backlog, and closing a lane of a million partitions touches the window alone.
 */
const WINDOW = 16

/**
 * Of partitions that are called back even fewer are ready at once: each takes a place of its own in that index, among
 * those of all other tasks (arrays of 500 in four lanes: 121,000 a second with 16, 129,000 with 8, 147,000 with 4, 141,000
 * with 2; medians of four). The first pull that comes near them fills the window.
 */
const FIRST_WINDOW = 4

/**
 * Where the front of the order knows everything that is ready, windows are kept in memory and cost no index entries:
 * a larger one is filled less often.
 */
const WINDOW_IN_MEMORY = 128

/** An open lane that has less ready than this has nothing held. */
export const LOW_WATER = FIRST_WINDOW

/** The most rows that one transaction takes out of reach; what is left, pulls and later steps take. */
export const STEP = 500

export class Lanes {
  readonly #books: Books
  readonly #ledger: Ledger
  readonly #front: Front
  readonly #sql: ReturnType<typeof prepare>
  #mayHold = STEP

  constructor(db: DatabaseSync, books: Books, front: Front) {
    this.#books = books
    this.#ledger = books.ledger
    this.#front = front
    this.#sql = prepare(db)
  }

  /** The first thing in a transaction. */
  begin(): void {
    this.#mayHold = STEP
  }

  /** False once the running transaction has taken as many rows out of reach as one may. */
  get mayHold(): boolean {
    return this.#mayHold > 0
  }

  /** Partitions of a new call-back that may be ready at once; the rest queue up behind the window. */
  roomAtTheBack(lane: LaneEntry): number {
    if (!this.#ledger.isOpen(lane) || lane.partitions.held > 0) return 0
    return Math.max(0, FIRST_WINDOW - lane.partitions.ready)
  }

  /** Fills an open lane's window; returns how many partitions became ready. */
  fill(lane: LaneEntry): number {
    const { partitions } = lane
    const { isWhole } = this.#front
    const [window, lowWater] = isWhole ? [WINDOW_IN_MEMORY, WINDOW_IN_MEMORY / 2] : [WINDOW, LOW_WATER]
    if (partitions.held === 0 || partitions.ready >= lowWater || !this.#ledger.isOpen(lane)) return 0
    const rows = this.#sql.firstHeld.all(
      lane.id,
      this.#books.deferred.admittedUpTo(lane),
      window - partitions.ready,
    )
    const level = this.#front.timeToRank(lane.level)
    const to = next('held', 'admit')
    for (const row of rows) {
      const [recordCount] = row
      const candidate = candidateOf(row, lane, rankFresh(level, lane, recordCount), true)
      this.#ledger.move(lane, 'held', to, recordCount)
      this.#admit(candidate)
    }
    return rows.length
  }

  /** At the front it is known from memory, and most are handed out before their row is written. */
  #admit(candidate: Candidate): void {
    if (this.#front.becomesReady(candidate)) {
      this.#books.deferred.admit(candidate)
      this.#front.join(candidate)
    } else this.#books.deferred.admitAtOnce(candidate)
  }

  /**
   * Takes ready partitions of a closed lane out of the reach of pulls, as many as the transaction may. Nothing is handed
   * out of what it leaves: pulls look at the lane as well, and hold what they come across. From the last one on, so that
   * a lane that opens before all are held goes on in its order.
   */
  hold(lane: LaneEntry): number {
    if (!this.mayHold) return 0
    this.#front.forget()
    const rows = this.#sql.lastReady.all(lane.id, this.#mayHold)
    this.#mayHold -= rows.length
    const to = next('ready', 'hold')
    for (const row of rows) {
      if (row.fresh === 1) setBack(lane, BigInt(row.rank))
      this.#sql.hold.run(to, row.id)
      this.#ledger.move(lane, 'ready', to, row.recordCount)
    }
    return rows.length
  }

  /**
   * Brings barriers, windows and closed lanes in line with what a transaction did to these lanes.
   * Returns how many partitions became ready.
   */
  settle(touched: readonly LaneEntry[]): number {
    let readied = 0
    for (const lane of touched) {
      if (lane.task.levelBarrier)
        readied += this.moveBarrier(lane.task, holdsBarrier(lane) ? lane.level : null)
      if (this.#ledger.isOpen(lane)) readied += this.fill(lane)
      else if (lane.partitions.ready > 0) this.hold(lane)
    }
    return readied
  }

  /** Lanes may open that have partitions ready since before they closed: pulls may have left those out. */
  mayOpen(): void {
    this.#front.forget()
    this.#front.rewind()
  }

  /** Finds the barrier's place after it was put up. */
  placeBarrier(task: TaskEntry): number {
    return task.levelBarrier ? this.#setOpenLevel(task, this.#lowestUnfinished(task, 0)) : 0
  }

  /**
   * Below the open level everything is finished, so the search starts there, and at `unfinished`,
   * the level that just got work.
   */
  moveBarrier(task: TaskEntry, unfinished: number | null = null): number {
    const from = task.openLevel === null ? null : this.#lowestUnfinished(task, task.openLevel)
    const candidates = [from, unfinished].filter((level) => level !== null)
    return this.#setOpenLevel(task, candidates.length === 0 ? null : Math.min(...candidates))
  }

  #setOpenLevel(task: TaskEntry, level: number | null): number {
    const before = task.openLevel
    if (level === before) return 0
    task.openLevel = level
    this.#ledger.touch(task)
    const closing =
      before === null || (level !== null && before <= level)
        ? undefined
        : this.#ledger.entries.laneOf(task, before)
    if (closing !== undefined && !this.#ledger.isOpen(closing)) this.hold(closing)
    const opening = level === null ? undefined : this.#ledger.entries.laneOf(task, level)
    if (opening === undefined) return 0
    if (opening.partitions.ready > 0) this.mayOpen()
    return this.fill(opening)
  }

  #lowestUnfinished(task: TaskEntry, fromLevel: number): number | null {
    let after = fromLevel - 1
    while (true) {
      const row = this.#sql.nextLane.get(task.id, after)
      if (row === undefined) return null
      const lane = this.#ledger.entries.lane(row.id)
      if (holdsBarrier(lane)) return lane.level
      after = lane.level
    }
  }
}

function prepare(db: DatabaseSync) {
  return {
    // A bare parameter as the limit has SQLite prepare the statement anew for each value (6.5 µs), a sum has not (2.3).
    firstHeld: arrayQuery<CandidateRow>(
      db,
      `SELECT ${CANDIDATE_COLUMNS} FROM partition
       WHERE lane = ? AND state = 'held' AND id > ? ORDER BY id LIMIT ? + 0`,
    ),
    lastReady: query<{ id: number; rank: string; fresh: number; recordCount: number }>(
      db,
      `SELECT id, CAST(rank AS TEXT) AS rank, fresh, record_count AS recordCount
       FROM partition WHERE lane = ? AND state = 'ready' ORDER BY id DESC LIMIT ?`,
    ),
    hold: db.prepare('UPDATE partition SET state = ?, rank = NULL WHERE id = ?'),
    nextLane: query<{ id: number }>(
      db,
      'SELECT id FROM lane WHERE task = ? AND level > ? ORDER BY level LIMIT 1',
    ),
  }
}
