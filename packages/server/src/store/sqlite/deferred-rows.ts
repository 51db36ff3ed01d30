import type { DatabaseSync } from 'node:sqlite'
import type { LeaseOutcome } from '../../handoff/rules/settlement.ts'
import type { LaneEntry } from '../../handoff/rules/task-entry.ts'
import type { Candidate } from './candidate.ts'
import type { PartitionEntry } from './partition-entry.ts'
import { ROWS_OF_A_STEP, type Steps } from './steps.ts'

/** A rank is text here and in the journal: the driver and JSON both refuse 64 bits. */
export type AdmitRow = readonly [rank: string, id: number]

export type LeaseRow = readonly [
  term: number,
  secret: string,
  holder: number | null,
  dueAt: number,
  leasedAt: number,
  id: number,
]

export type FinishRow = readonly [
  outcome: LeaseOutcome | null,
  attempts: number,
  settledAt: number,
  reported: number | null,
  id: number,
]

/** The steps of the running transaction, as the statements below take them and the journal keeps them. */
export interface DeferredSteps {
  readonly admits: readonly AdmitRow[]
  readonly leases: readonly LeaseRow[]
  readonly finishes: readonly FinishRow[]
}

/** A partition that is ahead of its row, and by which steps. */
interface Deferred {
  /** As it stands since it was leased or finished. */
  partition: PartitionEntry | undefined
  admit: AdmitRow | undefined
  lease: LeaseRow | undefined
  finish: FinishRow | undefined
}

/**
 * Partitions whose rows do not yet say what the journal says. Only the three steps that every partition takes are put
 * off: into the window of its lane, leased, finished. Whatever else happens to a partition is written at once, after
 * what was put off.
 */
export class DeferredRows {
  /** Leased or finished. */
  #taken = new Map<number, Deferred>()
  /** In the window and not yet handed out. */
  readonly #admitted = new Map<number, AdmitRow>()
  /**
   * Of a lane: up to which id rows that say held may have moved up here. A row that is held again afterwards would stand
   * before that and never be found, so nothing of it outlasts the rows that it is about: whoever holds has them written.
   */
  readonly #admittedUpTo = new Map<LaneEntry, number>()
  readonly #sql: ReturnType<typeof prepare>
  #admits: AdmitRow[] = []
  #leases: LeaseRow[] = []
  #finishes: FinishRow[] = []
  #finished = 0

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  get leased(): number {
    return this.#taken.size - this.#finished
  }

  get finished(): number {
    return this.#finished
  }

  /** Then the rows say all there is to say, also of who is held. */
  get isEmpty(): boolean {
    return this.#taken.size === 0 && this.#admitted.size === 0
  }

  has(id: number): boolean {
    return this.#taken.has(id) || this.#admitted.has(id)
  }

  /** Undefined also for one that has only moved up: too little is known of it here. */
  get(id: number): PartitionEntry | undefined {
    return this.#taken.get(id)?.partition
  }

  /** Of the leases that run. */
  earliestExpiry(): number | null {
    let earliest: number | null = null
    for (const { lease, finish } of this.#taken.values()) {
      if (lease === undefined || finish !== undefined) continue
      const [, , , dueAt] = lease
      if (earliest === null || dueAt < earliest) earliest = dueAt
    }
    return earliest
  }

  /** Behind this one the lane's rows that say held are held. */
  admittedUpTo(lane: LaneEntry): number {
    return this.#admittedUpTo.get(lane) ?? 0
  }

  admit({ id, lane, rank }: Candidate): void {
    const row = [String(rank), id] as const
    this.#admitted.set(id, row)
    this.#admittedUpTo.set(lane, id)
    this.#admits.push(row)
  }

  /** For one that nobody would find in memory. */
  admitAtOnce({ id, rank }: Candidate): void {
    this.#sql.admit.run(rank, id)
  }

  lease(partition: PartitionEntry, row: LeaseRow): void {
    const { id } = partition
    this.#taken.set(id, { partition, admit: this.#admitted.get(id), lease: row, finish: undefined })
    this.#admitted.delete(id)
    this.#leases.push(row)
  }

  finish(partition: PartitionEntry, row: FinishRow): void {
    const known = this.#taken.get(partition.id)
    if (known === undefined) {
      this.#taken.set(partition.id, { partition, admit: undefined, lease: undefined, finish: row })
    } else {
      known.partition = partition
      known.finish = row
    }
    this.#finished += 1
    this.#finishes.push(row)
  }

  /** What the running transaction put off, for the journal. */
  take(): DeferredSteps {
    const steps = { admits: this.#admits, leases: this.#leases, finishes: this.#finishes }
    this.#admits = []
    this.#leases = []
    this.#finishes = []
    return steps
  }

  /** Those that are still under way wait to be written once, when they are through. */
  writeFinished(): Steps<void> {
    return this.#writeTaken(({ finish }) => finish !== undefined)
  }

  /** All but those that have only moved up. */
  writeTaken(): Steps<void> {
    return this.#writeTaken(() => true)
  }

  *write(): Steps<void> {
    yield* this.writeTaken()
    for (const row of this.#admitted.values()) this.#sql.admit.run(...row)
    this.forget()
  }

  replay({ admits, leases, finishes }: DeferredSteps): void {
    for (const row of admits) this.#sql.admit.run(...row)
    for (const row of leases) this.#sql.lease.run(...row)
    for (const row of finishes) this.#sql.finish.run(...row)
  }

  forget(): void {
    this.#taken.clear()
    this.#finished = 0
    this.#admitted.clear()
    this.#admittedUpTo.clear()
    this.take()
  }

  /** What is left to be written is left to be taken, too: the journal is about to lose what it said of it. */
  *#writeTaken(isDue: (row: Deferred) => boolean): Steps<void> {
    this.take()
    this.#admits = [...this.#admitted.values()]
    const taken = this.#taken
    // A new map, because those that grow and shrink for long keep the collector from what they no longer hold.
    this.#taken = new Map()
    const rows = taken.entries()
    while (this.#writeStep(rows, isDue)) yield
    this.#finished = 0
    if (this.isEmpty) this.#admittedUpTo.clear()
  }

  /** False when all are written or kept. */
  #writeStep(rows: MapIterator<[number, Deferred]>, isDue: (row: Deferred) => boolean): boolean {
    let written = 0
    for (let next = rows.next(); next.done !== true; next = rows.next()) {
      const [id, row] = next.value
      if (isDue(row)) {
        this.#write(row)
        written += 1
        if (written === ROWS_OF_A_STEP) return true
      } else {
        this.#taken.set(id, row)
        if (row.admit !== undefined) this.#admits.push(row.admit)
        if (row.lease !== undefined) this.#leases.push(row.lease)
      }
    }
    return false
  }

  /**
   * Row by row: an UPDATE from json_each is one statement, but takes 6 to 10 µs per row where these take 4 to 6,
   * because it parses its array again for every column. One that is finished needs no rank any more.
   */
  #write({ admit, lease, finish }: Deferred): void {
    if (lease !== undefined && finish !== undefined) {
      const [term, secret, holder, , leasedAt] = lease
      this.#sql.leaseAndFinish.run(term, secret, holder, leasedAt, ...finish)
    } else if (finish !== undefined) this.#sql.finish.run(...finish)
    else if (lease !== undefined && admit !== undefined) this.#sql.admitAndLease.run(admit[0], ...lease)
    else if (lease !== undefined) this.#sql.lease.run(...lease)
  }
}

function prepare(db: DatabaseSync) {
  const leased = 'fresh = 0, term = ?, secret = ?, holder = ?'
  const running = `state = 'leased', outcome = NULL, ${leased}, due_at = ?, leased_at = ?`
  const finished = `state = 'done', due_at = NULL, outcome = ?, attempts = ?, settled_at = ?, reported_records = ?`
  return {
    admit: db.prepare(`UPDATE partition SET state = 'ready', fresh = 1, rank = ? WHERE id = ?`),
    lease: db.prepare(`UPDATE partition SET ${running} WHERE id = ?`),
    admitAndLease: db.prepare(`UPDATE partition SET rank = ?, ${running} WHERE id = ?`),
    finish: db.prepare(`UPDATE partition SET ${finished} WHERE id = ?`),
    leaseAndFinish: db.prepare(`UPDATE partition SET ${leased}, leased_at = ?, ${finished} WHERE id = ?`),
  }
}
