import type { DatabaseSync } from 'node:sqlite'
import { DeferredRows } from './deferred-rows.ts'
import { Journal, type JournalEntry } from './journal.ts'
import { Ledger } from './ledger.ts'
import type { LedgerRows } from './ledger-rows.ts'
import { PullKeys } from './pull-keys.ts'
import { atOnce, type Steps } from './steps.ts'

/**
 * Finished partitions are written up from this many on, because pulls wait meanwhile: 1,000 at a time gave the same
 * rate as 300, and a p99 of 5.7 ms instead of 4.7 (one run). With many leases under way, which have to be noted again
 * each time, later: for two more per lease 16 clients with batches of 50 made 71,259 pairs a second instead of 64,682 with
 * one per two leases, p99 14.8 instead of 17.1 ms (medians of seven). And with many lanes, each of which has pages of its
 * own, later still: in front of 200 lanes a transaction of eight pulls and eight settles takes 420 instead of 640 µs
 * (medians of three).
 */
const FINISHED_WORTH_WRITING = 250
const PER_LEASE_WORTH_WRITING = 2
const MOST_FOR_LEASES = 2000
const PER_LANE_WORTH_WRITING = 8
const MOST_FOR_LANES = 2000

/** Leases that may wait for their end in the journal, which repeats them whenever it is cleared. */
const MOST_LEASED = 4000

/** A page each. */
const MOST_SLOTS = 500

const noRows: LedgerRows = { levels: [], moves: [], lanes: [], tasks: [], paces: [] }

/**
 * The rows of the hand-off and what was put off writing into them.
 *
 * A hand-off's transaction is noted in the journal, which takes one or two pages instead of the nine to fifteen that
 * its rows stand on. Whoever looks for rows by their state has them written up first; so does whoever changes a
 * partition in another way than leasing or finishing it.
 */
export class Books {
  readonly ledger: Ledger
  readonly deferred: DeferredRows
  readonly keys: PullKeys
  readonly #journal: Journal
  #isRead = false

  constructor(db: DatabaseSync) {
    this.ledger = new Ledger(db)
    this.deferred = new DeferredRows(db)
    this.keys = new PullKeys(db)
    this.#journal = new Journal(db)
  }

  /** False until what an earlier process, or a transaction before a rollback, left in the journal is written up. */
  get isRead(): boolean {
    return this.#isRead
  }

  /** True when the file's rows show all that anyone sees from outside. */
  get isShown(): boolean {
    return this.deferred.leased + this.deferred.finished === 0 && this.ledger.isWritten
  }

  /** Within a transaction of its own, before anything else. */
  read(): void {
    for (const entry of this.#journal.read()) {
      this.deferred.replay(entry)
      // An entry of an older version says less.
      const { keys = [], ...rows }: Partial<JournalEntry> = entry
      this.ledger.replay({ ...noRows, ...rows })
      this.keys.replay(keys)
    }
    this.#journal.clear()
    this.#isRead = true
  }

  /** The last thing before the commit of a hand-off. Returns the tasks that it changed. */
  *note(now: number): Steps<number[]> {
    const { tasks, rows } = this.ledger.close(now)
    const { leased, finished } = this.deferred
    if (this.ledger.isFull) yield* this.#writeAll()
    else if (leased > MOST_LEASED || this.#journal.slots > MOST_SLOTS)
      yield* this.#writeSome(this.deferred.writeTaken())
    else if (finished > this.#worthWriting(leased)) yield* this.#writeSome(this.deferred.writeFinished())
    else this.#append(rows)
    return tasks
  }

  /** The last thing before the commit of anything else: it is written where it belongs. */
  *write(now: number): Steps<number[]> {
    const { tasks } = this.ledger.close(now)
    yield* this.#writeAll()
    return tasks
  }

  /** Before partitions are looked for by their state. */
  writeUpPartitions(): void {
    if (!this.deferred.isEmpty) this.writeUp()
  }

  writeUp(): void {
    atOnce(this.#writeAll())
  }

  /**
   * All that anyone sees from outside, where a partition that waits within the window of its lane is not told from
   * one that waits behind it.
   */
  writeUpTaken(): void {
    atOnce(this.#writeSome(this.deferred.writeTaken()))
  }

  #worthWriting(leased: number): number {
    const forLeases = Math.min(PER_LEASE_WORTH_WRITING * leased, MOST_FOR_LEASES)
    const forLanes = Math.min(PER_LANE_WORTH_WRITING * this.ledger.unwrittenLanes, MOST_FOR_LANES)
    return FINISHED_WORTH_WRITING + forLeases + forLanes
  }

  *#writeAll(): Steps<void> {
    yield* this.deferred.write()
    this.#writeOthers()
  }

  /** What is left to be written is noted again. */
  *#writeSome(partitions: Steps<void>): Steps<void> {
    yield* partitions
    this.#writeOthers()
    this.#append(noRows)
  }

  #writeOthers(): void {
    this.ledger.write()
    this.keys.write()
    this.#journal.clear()
  }

  /** A pull that found nothing leaves nothing behind, and its commit waits for no disk. */
  #append(rows: LedgerRows): void {
    const entry = { ...this.deferred.take(), ...rows, keys: this.keys.take() }
    if (Object.values(entry).some(({ length }) => length > 0)) this.#journal.append(entry)
  }

  /**
   * After a commit: memory must not follow the number of tasks. A commit that finds the ledger full has written
   * everything. True when whoever holds entries of the ledger must let go of them.
   */
  trim(): boolean {
    if (!this.ledger.isFull || !this.ledger.isWritten || !this.deferred.isEmpty) return false
    this.ledger.forget()
    return true
  }

  /** After a rollback: memory holds what the file does not. */
  forget(): void {
    this.ledger.forget()
    this.deferred.forget()
    this.keys.forget()
    this.#isRead = false
  }
}
