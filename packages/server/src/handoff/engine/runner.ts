import { setImmediate as nextIteration } from 'node:timers/promises'
import { type Disk, KnownKeys, type RowChanges } from '../disk.ts'
import type { OpenWorkMeter } from '../open-work-meter.ts'
import {
  DEFAULT_MAX_LANES,
  DEFAULT_MAX_LEASES,
  MAX_LANES_OF_TASK,
  type OpenWorkLimits,
} from '../rules/open-work-limits.ts'
import type { Policy } from '../rules/policy.ts'
import { LeaderUnavailable } from '../store.ts'
import type { EngineContext } from './engine-context.ts'
import { decodeEntry, type Entry, encodeEntry } from './entry.ts'
import { loadOpenWork } from './load-open-work.ts'
import { Memory, type MemoryBounds } from './state/memory.ts'
import { RecentPace } from './state/recent-pace.ts'
import { type Flushable, inPieces, rowChangesOf, Unflushed } from './state/unflushed.ts'
import { Transaction } from './transaction.ts'
import { loadKeys } from './verbs/pull.ts'
import { createDeliveries } from './webhook-events.ts'

export interface EngineOptions {
  readonly disk: Disk
  readonly policy: Policy
  readonly clock: () => number
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number
  /** Creates a secret for a lease. */
  readonly secret: () => string
  /** Waits for the next iteration of the event loop. A simulation replaces it. */
  readonly nextIteration?: () => Promise<void>
  readonly limits?: Partial<EngineLimits> | undefined
  readonly node?: string | undefined
  readonly openWork?: OpenWorkMeter | undefined
}

export interface EngineLimits extends MemoryBounds, OpenWorkLimits {
  /** Once this many row changes or entries are unflushed, the older ones are flushed. */
  readonly flushRows: number
  readonly flushEntries: number
  /** The approximate maximum of rows written in one disk transaction. */
  readonly flushPiece: number
  /** Above this, rows are flushed beside other work, before work that needs them flushed starts. */
  readonly flushAheadRows: number
  /** A call-back with more partitions than this is stored in pieces, between other batches. */
  readonly largeCallBack: number
  readonly piece: number
}

const LIMITS: EngineLimits = {
  lanes: DEFAULT_MAX_LANES,
  lanesOfTask: MAX_LANES_OF_TASK,
  leases: DEFAULT_MAX_LEASES,
  partitions: 50_000,
  keys: 20_000,
  flushRows: 3000,
  flushEntries: 200,
  flushPiece: 2500,
  flushAheadRows: 5000,
  largeCallBack: 2000,
  piece: 500,
}

/** Batches wait for the flush when more than this many times `flushRows` changes are unflushed. */
const FLUSH_BACKLOG = 8

/** How long a confirmation that this node leads is enough for an answer without an entry. */
const CONFIRMED_MILLIS = 5000

/** Before its first partition was finished, a task is taken to have done nothing for this long. */
const FIRST_PACE_MILLIS = 60_000

type Committed = (tx: Transaction) => void

/**
 * Runs engine code against memory and disk, one transaction at a time: appends its entry and flushes rows
 * later. A transaction that fails leaves memory as it was. Only if it is unknown whether a write reached the
 * disk, or another node leads, is memory dropped, and the next transaction starts from what the disk has.
 */
export class Runner {
  readonly limits: EngineLimits
  readonly #disk: Disk
  readonly #options: EngineOptions
  readonly #committed: Committed
  #memory: Memory | null = null
  #last = 0
  #unflushed = new Unflushed()
  #flushing: Promise<void> | null = null
  #flushedTo = 0
  /** When the disk last confirmed that this node leads. */
  #confirmedAt = Number.NEGATIVE_INFINITY
  /** Incremented whenever memory is dropped. Work that started in an earlier epoch must not be completed. */
  epoch = 0

  constructor(options: EngineOptions, committed: Committed) {
    this.#options = options
    this.#disk = options.disk
    this.#committed = committed
    this.limits = { ...LIMITS, ...options.limits }
  }

  get now(): number {
    return this.#options.clock()
  }

  /** Whether this node surely led a moment ago. If not, it must not answer from memory alone. */
  get leadsForCertain(): boolean {
    const age = this.now - this.#confirmedAt
    return age >= 0 && age <= CONFIRMED_MILLIS
  }

  /** Prepares for transactions. Entries that were appended but not flushed are flushed first. */
  async open(): Promise<Memory> {
    while (this.#memory === null) {
      while (this.#flushing !== null) await this.#flushing.catch(() => undefined)
      const { epoch, now } = this
      // On a shared database, this node takes over the leadership.
      const { last, unflushed, nextIds } = await this.#disk.open()
      const rowChanges = rowChangesOf(unflushed.filter((body) => body !== '').map(decodeEntry))
      if (unflushed.length > 0) await this.#disk.flush(rowChanges, last)
      const ids = rowChanges.nextIds ?? nextIds
      // A row of a call-back that did not finish, whose entry was lost, would have the id of a new partition.
      await this.#disk.unstage({ first: ids.partition, last: Number.MAX_SAFE_INTEGER })
      this.#last = last
      this.#flushedTo = last
      this.#unflushed = new Unflushed()
      const memory = new Memory(ids, last)
      await loadOpenWork(this.#disk, memory, () => this.yieldToEventLoop())
      // A large call-back failed in the meantime.
      if (this.epoch !== epoch) continue
      this.#memory = memory
      this.#confirmedAt = now
      this.#options.openWork?.note(memory.lanesUsed, memory.leases.size)
    }
    return this.#memory
  }

  /**
   * Runs one transaction and makes it durable. An entry is appended even if nothing changed, so that a node
   * that lost leadership cannot answer from stale memory. `needsEntry` returns false for results that do not
   * need this. A transaction with a key that turns out to be known runs again.
   */
  async transact<Result>(
    work: (tx: Transaction) => Promise<Result>,
    needsEntry: (result: Result) => boolean = () => true,
  ): Promise<Result> {
    let known: readonly string[] = []
    while (true) {
      const memory = await this.open()
      const tx = new Transaction(memory, this.#last + 1, this.context)
      try {
        if (known.length > 0) await loadKeys(tx, known)
        const result = await work(tx)
        if (!tx.isEmpty || needsEntry(result)) await this.#append(tx)
        return result
      } catch (error) {
        tx.restore()
        if (!(error instanceof KnownKeys)) {
          if (error instanceof LeaderUnavailable) this.drop()
          throw error
        }
        known = [...known, ...error.keys]
      } finally {
        if (this.#memory === memory) {
          memory.evict(tx.loadedIds, this.limits)
          this.#options.openWork?.note(memory.lanesUsed, memory.leases.size)
        }
      }
    }
  }

  async #append(tx: Transaction): Promise<void> {
    if (tx.memory.subscriptions.size > 0) createDeliveries(tx)
    const entry = tx.entry()
    const { number, newRows, newKeys } = tx
    const appended = { number, body: encodeEntry(entry), newRows, newKeys }
    try {
      await this.#disk.append(appended)
      await this.#appended(tx, entry)
    } catch (error) {
      // It may be durable although it failed.
      if (!(error instanceof KnownKeys)) this.drop()
      throw error
    }
  }

  async #appended(tx: Transaction, entry: Entry): Promise<void> {
    this.#confirmedAt = tx.now
    for (const task of tx.cancelled) tx.memory.closeLanes(task)
    for (const { table, task, records } of tx.finished.partitions) {
      table.pace ??= new RecentPace(tx.now)
      table.pace.add(tx.now, records)
      task.pace ??= new RecentPace(Math.max(task.firstCallBackAt, tx.now - FIRST_PACE_MILLIS))
      task.pace.add(tx.now, records)
    }
    this.#committed(tx)
    // A flush failed meanwhile. This entry is durable, and unflushed ones are read from the disk again.
    if (this.#memory !== tx.memory) return
    this.#last = tx.number
    this.#unflushed.add(entry, tx.number)
    const { newerRows, entries } = this.#unflushed
    if (newerRows < this.limits.flushRows && entries < this.limits.flushEntries) return
    if (this.#flushing === null) this.#flush(this.#unflushed.takeOlder())
    if (newerRows > this.limits.flushRows * FLUSH_BACKLOG) await this.#flushing
  }

  /** Flushes everything durable. Call it exclusively, so that nothing is appended in the meantime. */
  async flush(): Promise<void> {
    await this.open()
    while (this.#flushing !== null) await this.#flushing
    this.#flush(this.#unflushed.takeAll())
    await this.#flushing
  }

  /** Whether many rows are unflushed. */
  get isFarBehind(): boolean {
    return this.#memory !== null && this.#unflushed.rows > this.limits.flushAheadRows
  }

  /** Flushes concurrently with other work, before work that needs flushed rows starts. */
  async flushAhead(): Promise<void> {
    try {
      while (this.#flushing !== null) await this.#flushing
      if (this.#memory !== null) this.#flush(this.#unflushed.takeAll())
      await this.#flushing
    } catch {
      // Memory was dropped. The next transaction reads the disk again and reports the error if that fails.
    }
  }

  #flush(flushable: Flushable | null): void {
    if (flushable === null) return
    const { rowChanges, upTo } = flushable
    const memory = this.#memory
    const flushing = this.#writePieces(rowChanges, upTo).then(
      () => {
        memory?.flushed(upTo, {
          tasks: rowChanges.tasks.keys(),
          lanes: rowChanges.lanes.keys(),
          partitions: rowChanges.partitions.keys(),
        })
        if (this.#flushing === flushing) this.#flushing = null
      },
      (error: unknown) => {
        if (this.#flushing === flushing) this.#flushing = null
        this.drop()
        throw error
      },
    )
    // Callers that await the flush get the error. If none does, the next transaction starts from the disk.
    flushing.catch(() => undefined)
    this.#flushing = flushing
  }

  /** Rows may be newer than the last flushed entry, never older, so the last piece advances it. */
  async #writePieces(rowChanges: RowChanges, upTo: number): Promise<void> {
    const pieces = inPieces(rowChanges, this.limits.flushPiece)
    const last = pieces.pop() ?? rowChanges
    for (const piece of pieces) {
      await this.#disk.flush(piece, this.#flushedTo)
      await this.yieldToEventLoop()
    }
    await this.#disk.flush(last, upTo)
    this.#flushedTo = upTo
  }

  /** Drops memory that can no longer be trusted. The next transaction reads the disk. */
  drop(): void {
    this.#memory = null
    this.epoch += 1
    this.#options.openWork?.forget()
  }

  yieldToEventLoop(): Promise<void> {
    return this.#options.nextIteration?.() ?? nextIteration()
  }

  get context(): EngineContext {
    const { policy, random, secret } = this.#options
    const nextIteration = () => this.yieldToEventLoop()
    return { disk: this.#disk, nextIteration, limits: this.limits, policy, now: this.now, random, secret }
  }

  /** Flushes before a graceful shutdown, so that the rows are complete for other readers. */
  async close(): Promise<void> {
    if (this.#memory !== null) await this.flush()
    await this.#disk.close()
  }
}
