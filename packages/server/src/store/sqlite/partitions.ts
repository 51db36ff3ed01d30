import type { DatabaseSync } from 'node:sqlite'
import { earlier } from '../../handoff/rules/earlier.ts'
import { rankRetry } from '../../handoff/rules/fair-order.ts'
import { next, type PartitionState } from '../../handoff/rules/life-cycle.ts'
import { leaseMillis, type Policy } from '../../handoff/rules/policy.ts'
import type { Change, LeaseOutcome } from '../../handoff/rules/settlement.ts'
import { countReport } from '../../handoff/rules/task-course.ts'
import type { Books } from './books.ts'
import type { Consequences } from './consequences.ts'
import type { Front } from './front.ts'
import type { Ledger } from './ledger.ts'
import type { PartitionEntry } from './partition-entry.ts'
import { arrayQuery } from './query.ts'

/** In the order of COLUMNS. */
type Row = [
  id: number,
  lane: number,
  state: PartitionState,
  term: number,
  secret: string,
  outcome: LeaseOutcome | null,
  attempts: number,
  releases: number,
  recordCount: number,
]

const COLUMNS = 'id, lane, state, term, secret, outcome, attempts, releases, record_count'

/** Reads partitions and writes what was decided about them. */
export class Partitions {
  readonly #books: Books
  readonly #ledger: Ledger
  readonly #front: Front
  readonly #policy: Policy
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync, books: Books, front: Front, policy: Policy) {
    this.#books = books
    this.#ledger = books.ledger
    this.#front = front
    this.#policy = policy
    this.#sql = prepare(db)
  }

  get(id: number): PartitionEntry | undefined {
    const ahead = this.#books.deferred.get(id)
    if (ahead !== undefined) return ahead
    if (this.#books.deferred.has(id)) this.#books.writeUp()
    const row = this.#sql.byId.get(id)
    return row === undefined ? undefined : this.#entry(row)
  }

  dueLeases(now: number, limit: number): PartitionEntry[] {
    return this.#sql.dueLeases.all(now, limit).map((row) => this.#entry(row))
  }

  dueBackoffs(now: number, limit: number): PartitionEntry[] {
    return this.#sql.dueBackoffs.all(now, limit).map((row) => this.#entry(row))
  }

  /** Also of leases that were put off writing. A row may say so of one that has been finished since. */
  nextDueAt(withLeases: boolean): number | null {
    const written = this.#nextWrittenDueAt(withLeases)
    return withLeases ? earlier(written, this.#books.deferred.earliestExpiry()) : written
  }

  #nextWrittenDueAt(withLeases: boolean): number | null {
    const backoff = this.#sql.nextBackoff.get()?.['due_at'] as number | undefined
    const lease = withLeases ? (this.#sql.nextLease.get()?.['due_at'] as number | undefined) : undefined
    const due = Math.min(backoff ?? Number.POSITIVE_INFINITY, lease ?? Number.POSITIVE_INFINITY)
    return Number.isFinite(due) ? due : null
  }

  /** Writes a verdict. Returns when the partition is due next, if it is. */
  apply(partition: PartitionEntry, change: Change, now: number, consequences: Consequences): number | null {
    const { lane, recordCount } = partition
    const isFinish = change.event === 'finish'
    if (!isFinish && (change.to === 'held' || this.#books.deferred.has(partition.id))) this.#books.writeUp()
    if (change.wasted !== 0) lane.task.attemptsWasted += change.wasted
    if (change.reason !== undefined) this.#sql.note.run(change.reason, partition.id)
    if (change.event === null) {
      this.#sql.outcome.run(change.outcome, partition.id)
      return null
    }
    // Revived or parked by a late word: it may be at the front, and must not be handed out any more.
    if (!isFinish && partition.state === 'ready') this.#front.forget()
    this.#ledger.move(lane, partition.state, change.to, recordCount)
    switch (change.to) {
      case 'done':
        this.#finish(partition, change, now)
        return null
      case 'leased': {
        const dueAt = now + leaseMillis(this.#policy, recordCount)
        this.#write(partition, change, dueAt, false)
        consequences.earliestDueAt = earlier(consequences.earliestDueAt, dueAt)
        return dueAt
      }
      case 'delayed': {
        const dueAt = now + change.delayMillis
        this.#write(partition, change, dueAt, !change.keepsRank)
        consequences.earliestDueAt = earlier(consequences.earliestDueAt, dueAt)
        return dueAt
      }
      case 'ready':
        this.#rankIfLost(partition)
        this.#write(partition, change, null, false)
        this.#front.joinAgain(partition.id)
        consequences.returnedTo.push(lane)
        return null
      case 'parked':
        consequences.parked.push(partition.id)
        this.#write(partition, change, null, true)
        return null
      case 'cancelled':
      case 'held':
        this.#write(partition, change, null, true)
        return null
    }
  }

  /** The back-off ended: back into the order through the lane's second tag, unless it kept its rank. */
  wake(partition: PartitionEntry): void {
    const { lane } = partition
    const level = this.#front.timeToRank(lane.level)
    const kept = this.#sql.rank.get(partition.id)?.['rank'] as string | null
    const rank = kept === null ? rankRetry(level, lane, partition.recordCount) : BigInt(kept)
    const to = next(partition.state, 'wake')
    this.#sql.wake.run(to, rank, partition.id)
    this.#ledger.move(lane, partition.state, to, partition.recordCount)
    if (this.#front.becomesReady({ id: partition.id, lane, rank })) this.#front.forget()
  }

  /** A lease that expired lost its rank; revived and then given back it returns as an expired one does. */
  #rankIfLost({ id, lane, recordCount }: PartitionEntry): void {
    if (this.#sql.rank.get(id)?.['rank'] !== null) return
    this.#sql.setRank.run(rankRetry(this.#front.timeToRank(lane.level), lane, recordCount), id)
  }

  #finish(partition: PartitionEntry, change: Change, now: number): void {
    const { lane, recordCount } = partition
    const reported = change.records ?? null
    const { outcome, attempts, releasesInARow } = change
    const finished = { ...partition, state: change.to, outcome, attempts, releasesInARow }
    this.#books.deferred.finish(finished, [outcome, attempts, now, reported, partition.id])
    if (partition.state !== 'leased') {
      // Finished late: it stands in an index other than that of leases, and may be at the front.
      this.#front.forget()
    }
    this.#ledger.countFinished(lane.task, recordCount)
    if (reported !== null) countReport(lane.task, recordCount, reported)
  }

  #write(partition: PartitionEntry, change: Change, dueAt: number | null, losesRank: boolean): void {
    const sql = losesRank ? this.#sql.changeLosingRank : this.#sql.change
    sql.run(change.to, change.outcome, change.attempts, change.releasesInARow, dueAt, partition.id)
  }

  #entry([
    id,
    laneId,
    state,
    term,
    secret,
    outcome,
    attempts,
    releasesInARow,
    recordCount,
  ]: Row): PartitionEntry {
    const lane = this.#ledger.entries.lane(laneId)
    return {
      id,
      lane,
      recordCount,
      state,
      term,
      secret,
      outcome,
      attempts,
      releasesInARow,
      taskCancelled: lane.task.cancelled,
    }
  }
}

function prepare(db: DatabaseSync) {
  const change =
    'UPDATE partition SET state = ?, outcome = ?, attempts = ?, releases = ?, due_at = ?, fresh = 0'
  return {
    byId: arrayQuery<Row>(db, `SELECT ${COLUMNS} FROM partition WHERE id = ?`),
    dueLeases: arrayQuery<Row>(
      db,
      `SELECT ${COLUMNS} FROM partition WHERE state = 'leased' AND due_at <= ? ORDER BY due_at LIMIT ?`,
    ),
    dueBackoffs: arrayQuery<Row>(
      db,
      `SELECT ${COLUMNS} FROM partition WHERE state = 'delayed' AND due_at <= ? ORDER BY due_at LIMIT ?`,
    ),
    nextLease: db.prepare(`SELECT due_at FROM partition WHERE state = 'leased' ORDER BY due_at LIMIT 1`),
    nextBackoff: db.prepare(`SELECT due_at FROM partition WHERE state = 'delayed' ORDER BY due_at LIMIT 1`),
    change: db.prepare(`${change} WHERE id = ?`),
    changeLosingRank: db.prepare(`${change}, rank = NULL WHERE id = ?`),
    rank: db.prepare('SELECT CAST(rank AS TEXT) AS rank FROM partition WHERE id = ?'),
    setRank: db.prepare('UPDATE partition SET rank = ? WHERE id = ?'),
    wake: db.prepare('UPDATE partition SET state = ?, rank = ?, fresh = 0, due_at = NULL WHERE id = ?'),
    note: db.prepare('UPDATE partition SET reason = ? WHERE id = ?'),
    outcome: db.prepare('UPDATE partition SET outcome = ? WHERE id = ?'),
  }
}
