import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { type Appended, KnownKeys, type OpenedDisk, type RowChanges } from '../../handoff/disk.ts'
import type { Heartbeat } from '../../handoff/heartbeats.ts'
import { hasNoRare, type PartitionDescriptor } from '../../handoff/partition.ts'
import { StoreUnavailable } from '../../handoff/store.ts'
import type { StagedIds } from '../../handoff/stored.ts'
import { heartbeatRows, recordHeartbeat } from '../instances.ts'
import type { Write } from '../statements.ts'
import { arrayQuery, inserter, sqlite, textOf, writer } from './dialect.ts'
import { FlushedRows } from './flush.ts'
import { Selects } from './selects.ts'

/**
 * A row with a body of this size fills one page. Overwriting it with a body of the same size keeps it there,
 * so a commit changes one page.
 */
const SLOT_BYTES = 4000

/** The number of free slots that are kept. Only very long entries leave more. */
const MOST_FREE = 1000

interface EntrySlots {
  readonly number: number
  readonly slots: readonly number[]
}

/**
 * The durable entries that are not flushed. An entry takes one slot, or several if it is long. A flush frees
 * the slots, and later entries overwrite them. A slot is free if its number is not greater than that of the
 * last flushed entry. What is known of the slots holds until another process writes.
 */
export class Entries {
  readonly #sql: ReturnType<typeof prepareSlots>
  /** Reused for each slot. After the size of an entry it still has bytes of earlier ones. */
  readonly #body = Buffer.alloc(SLOT_BYTES)
  #live: EntrySlots[] = []
  #free: number[] = []
  #slots = 0
  #last = 0

  constructor(db: DatabaseSync) {
    this.#sql = prepareSlots(db)
  }

  get last(): number {
    return this.#last
  }

  /** Whether the file still has the last entry and the last write of rows that are known here. */
  isCurrent(term: string, writes: number): boolean {
    const slot = this.#live.at(-1)?.slots[0] ?? -1
    return this.#sql.current.get(term, writes, this.#last, slot, this.#last) !== undefined
  }

  /** Reads all unflushed entries from the file. Appends continue after them. */
  read(): Pick<OpenedDisk, 'last' | 'unflushed'> {
    const [flushed] = this.#sql.flushed.get() ?? [0]
    const found = new Map<number, { slots: number[]; bodies: Uint8Array[] }>()
    this.#free = []
    this.#slots = 0
    this.#last = flushed
    for (const [slot, number, part, size, body] of this.#sql.slots.all()) {
      this.#slots = Math.max(this.#slots, slot + 1)
      if (number <= flushed) {
        this.#free.push(slot)
        continue
      }
      const entry = found.get(number) ?? { slots: [], bodies: [] }
      entry.slots[part] = slot
      entry.bodies[part] = body.subarray(0, size)
      found.set(number, entry)
      this.#last = Math.max(this.#last, number)
    }
    const inOrder = [...found].toSorted(([a], [b]) => a - b)
    this.#live = inOrder.map(([number, { slots }]) => ({ number, slots }))
    const unflushed = inOrder.map(([, { bodies }]) => Buffer.concat(bodies).toString())
    return { last: this.#last, unflushed }
  }

  append(number: number, text: string): void {
    if (number !== this.#last + 1) throw new Error(`entry ${number} does not follow entry ${this.#last}`)
    const bytes = Buffer.from(text)
    const slots: number[] = []
    let at = 0
    do {
      const size = bytes.copy(this.#body, 0, at, at + SLOT_BYTES)
      slots.push(this.#fill(number, slots.length, size))
      at += size
    } while (at < bytes.length)
    this.#live.push({ number, slots })
    this.#last = number
  }

  forget(upTo: number): void {
    this.#sql.flush.run(upTo)
    const isLive = this.#live.findIndex(({ number }) => number > upTo)
    const gone = this.#live.splice(0, isLive === -1 ? this.#live.length : isLive)
    for (const { slots } of gone) this.#free.push(...slots)
    for (const slot of this.#free.splice(MOST_FREE)) this.#sql.remove.run(slot)
  }

  #fill(number: number, part: number, size: number): number {
    const free = this.#free.pop()
    if (free !== undefined) {
      this.#sql.overwrite.run(number, part, size, this.#body, free)
      return free
    }
    const slot = this.#slots
    this.#sql.add.run(slot, number, part, size, this.#body)
    this.#slots += 1
    return slot
  }
}

type SlotRow = [slot: number, number: number, part: number, size: number, body: Uint8Array]

function prepareSlots(db: DatabaseSync) {
  return {
    flushed: arrayQuery<[number]>(db, 'SELECT number FROM flushed WHERE id = 1'),
    current: arrayQuery<[number]>(
      db,
      `SELECT 1 FROM flushed WHERE id = 1 AND term = ? AND writes = ?
         AND (number = ? OR (SELECT number FROM entry_slot WHERE slot = ?) = ?)`,
    ),
    slots: arrayQuery<SlotRow>(db, 'SELECT slot, number, part, size, body FROM entry_slot'),
    flush: db.prepare('UPDATE flushed SET number = max(number, ?) WHERE id = 1'),
    overwrite: db.prepare('UPDATE entry_slot SET number = ?, part = ?, size = ?, body = ? WHERE slot = ?'),
    add: db.prepare('INSERT INTO entry_slot (slot, number, part, size, body) VALUES (?, ?, ?, ?, ?)'),
    remove: db.prepare('DELETE FROM entry_slot WHERE slot = ?'),
  }
}

function prepare(db: DatabaseSync) {
  return {
    takeOver: db.prepare('UPDATE flushed SET term = ? WHERE id = 1'),
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    probe: db.prepare('INSERT OR REPLACE INTO probe (id, probed_at) VALUES (1, ?)'),
    key: db.prepare('SELECT 1 FROM pull_key WHERE key = ?'),
    recordHeartbeat: db.prepare(textOf(recordHeartbeat(sqlite, '?'))),
    writes: arrayQuery<[number]>(db, 'SELECT writes FROM flushed WHERE id = 1'),
    countWrite: db.prepare('UPDATE flushed SET writes = writes + 1 WHERE id = 1'),
    insertPlain: inserter(db, sqlite.plainDescriptors),
    insert: inserter(db, sqlite.descriptors),
    unstage: db.prepare('DELETE FROM partition WHERE id BETWEEN ? AND ?'),
  }
}

/**
 * A connection to the data file: its prepared statements, and the slots that hold entries. After a failed
 * transaction the slots are wrong until `open` reads them again.
 */
export class SqliteConnection {
  readonly selects: Selects
  readonly #db: DatabaseSync
  readonly #sql: ReturnType<typeof prepare>
  readonly #entries: Entries
  readonly #flushedRows: FlushedRows
  readonly #term: string
  #mode: 'FULL' | 'NORMAL' = 'FULL'
  /** How often rows were written. */
  #writes = 0
  /** Whether the file lacks what the connection before this one had written. */
  #isBehind = false

  /**
   * Writes are refused unless `term` is that of the process that took over last. Without `open` they are refused,
   * too, if the file is not as the connection before this one left it: memory may have more.
   */
  constructor(db: DatabaseSync, term: string, before?: SqliteConnection) {
    this.#db = db
    this.#term = term
    this.#sql = prepare(db)
    this.#entries = new Entries(db)
    this.#flushedRows = new FlushedRows(db)
    this.selects = new Selects(db)
    this.open()
    this.#isBehind =
      before !== undefined &&
      (before.#isBehind || before.#writes !== this.#writes || before.#entries.last !== this.#entries.last)
  }

  /** From now on, writes of all earlier terms are refused. */
  takeOver(): void {
    this.#transaction(() => this.#sql.takeOver.run(this.#term))
  }

  open(): OpenedDisk {
    this.#isBehind = false
    this.#writes = this.#sql.writes.get()?.[0] ?? 0
    return { ...this.#entries.read(), nextIds: this.#flushedRows.nextIds() }
  }

  /**
   * Keys are looked up before the transaction: this process is the only writer, so they cannot change in
   * between.
   */
  append({ number, body, newRows, newKeys }: Appended): void {
    const known = newKeys.filter((key) => this.#sql.key.get(key) !== undefined)
    if (known.length > 0) throw new KnownKeys(known)
    this.#transaction(() => {
      this.fence()
      this.#entries.append(number, body)
      if (newRows.length > 0) this.#insert(newRows)
    })
  }

  flush(rowChanges: RowChanges, upTo: number): void {
    this.#write(() => {
      this.#flushedRows.write(rowChanges)
      this.#entries.forget(upTo)
    })
  }

  stage(rows: readonly PartitionDescriptor[]): void {
    this.#write(() => this.#insert(rows))
  }

  unstage({ first, last }: StagedIds): void {
    this.#write(() => this.#sql.unstage.run(first, last))
  }

  write(writes: readonly Write[]): void {
    this.#write(() => {
      for (const { statement, rows } of writes) writer(this.#db, statement)(rows)
    })
  }

  recordInstances(heartbeats: readonly Heartbeat[], now: number): void {
    this.#transaction(() => {
      for (const row of heartbeatRows(heartbeats, now))
        this.#sql.recordHeartbeat.run(...(sqlite.instances.values(row) as SQLInputValue[]), now)
    })
  }

  /**
   * Must be called within a transaction. Another process can only have taken over if the lock of the folder
   * does not work, as on some network file systems.
   */
  fence(): void {
    if (this.#isBehind || !this.#entries.isCurrent(this.#term, this.#writes))
      throw new StoreUnavailable(
        'store_unavailable',
        'another process writes to the data file, or it has lost a write; nothing of this request was stored',
      )
  }

  probe(now: number): void {
    this.#transaction(() => this.#sql.probe.run(now))
  }

  /**
   * Writes rows, in a transaction that may be lost together with everything after it; SQLite's WAL guarantees
   * this order. Rows are flushed from durable entries, and staged rows count only with a later entry, whose
   * sync covers everything before it in the WAL.
   */
  #write(work: () => void): void {
    this.#syncing('NORMAL')
    this.#run(() => {
      this.fence()
      this.#sql.countWrite.run()
      work()
    })
    this.#writes += 1
  }

  #transaction(work: () => void): void {
    this.#syncing('FULL')
    this.#run(work)
  }

  /** Rows of partitions that were called back. */
  #insert(rows: readonly PartitionDescriptor[]): void {
    // Parameters cost time even when they are null. The few rows that have rare fields use a statement with
    // more columns.
    const isPlain = rows.every((row) => !row.inMixedLane && hasNoRare(row))
    const insert = isPlain ? this.#sql.insertPlain : this.#sql.insert
    insert(rows)
  }

  /** Called before each transaction, so that a failed one does not leave its mode to the next. */
  #syncing(mode: 'FULL' | 'NORMAL'): void {
    if (this.#mode === mode) return
    this.#db.exec(`PRAGMA synchronous = ${mode}`)
    this.#mode = mode
  }

  #run(work: () => void): void {
    this.#sql.begin.run()
    try {
      work()
      this.#sql.commit.run()
    } catch (error) {
      // A failed COMMIT may or may not have ended the transaction.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      throw error
    }
  }
}
