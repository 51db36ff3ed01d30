import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { type Appended, type Images, KnownKeys, type OpenedDisk } from '../../handoff/disk.ts'
import type { PartitionDescriptor, StagedIds } from '../../handoff/stored.ts'
import { Entries } from './entries.ts'
import { ImageRows } from './image-rows.ts'
import { InstanceRows } from './instance-rows.ts'
import { Loads } from './loads.ts'
import { Maintenance } from './maintenance.ts'
import type { OutboxRows } from './outbox-rows.ts'
import { descriptors, plainDescriptors } from './tables.ts'
import type { ThroughputRows } from './throughput-rows.ts'
import { Views } from './views.ts'

/** Rows per statement: one at a time takes 2.5 µs each, 50 at a time 1.1. */
const ROWS_AT_ONCE = 50

/** Writes the rows of partitions that were called back. */
class NewRows {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  insert(rows: readonly PartitionDescriptor[]): void {
    const { one, many, valuesOf } = rows.every(isPlain) ? this.#sql.plain : this.#sql.whole
    const inFullStatements = rows.length - (rows.length % ROWS_AT_ONCE)
    for (let at = 0; at < inFullStatements; at += ROWS_AT_ONCE)
      many.run(...valuesOf(rows.slice(at, at + ROWS_AT_ONCE)))
    for (const row of rows.slice(inFullStatements)) one.run(...valuesOf([row]))
  }

  remove({ first, last }: StagedIds): void {
    this.#sql.remove.run(first, last)
  }
}

/** A parameter that is always null is not free: what few rows have is left to a statement of its own. */
const isPlain = ({ extraFields, traceparent }: PartitionDescriptor): boolean =>
  extraFields === null && traceparent === null

/** In the order of the columns of `plainDescriptors`. Written out: a large call-back is nothing but these. */
function plainValuesOf(rows: readonly PartitionDescriptor[]): SQLInputValue[] {
  const values: SQLInputValue[] = []
  for (const { id, lane, index, recordCount, computeTable, spelling, calledBackAt } of rows)
    values.push(id, lane, index, recordCount, computeTable, spelling, calledBackAt)
  return values
}

const valuesOf = (rows: readonly PartitionDescriptor[]): SQLInputValue[] =>
  rows.flatMap((row) => descriptors.values(row))

function prepare(db: DatabaseSync) {
  const statements = ({ insert, names }: typeof descriptors | typeof plainDescriptors) => {
    const more = `, (${names.map(() => '?').join(', ')})`
    return { one: db.prepare(insert), many: db.prepare(insert + more.repeat(ROWS_AT_ONCE - 1)) }
  }
  return {
    plain: { ...statements(plainDescriptors), valuesOf: plainValuesOf },
    whole: { ...statements(descriptors), valuesOf },
    remove: db.prepare('DELETE FROM partition WHERE id BETWEEN ? AND ?'),
  }
}

/**
 * One opening of the data file: the prepared statements, and which slots entries are in. After a transaction that failed
 * the latter is wrong until `open` reads it again.
 */
export class Session {
  readonly loads: Loads
  readonly maintenance: Maintenance
  readonly views: Views
  readonly instances: InstanceRows
  readonly outbox: OutboxRows
  readonly throughput: ThroughputRows
  readonly #db: DatabaseSync
  readonly #entries: Entries
  readonly #newRows: NewRows
  readonly #images: ImageRows
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #probe: StatementSync
  readonly #key: StatementSync
  #mode: 'FULL' | 'NORMAL' = 'FULL'

  constructor(db: DatabaseSync) {
    this.#db = db
    this.#entries = new Entries(db)
    this.#newRows = new NewRows(db)
    this.#images = new ImageRows(db)
    this.loads = new Loads(db)
    this.maintenance = new Maintenance(db, this.loads)
    this.views = new Views(db)
    this.instances = new InstanceRows(db)
    this.outbox = this.#images.outbox
    this.throughput = this.#images.throughput
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#probe = db.prepare('INSERT OR REPLACE INTO probe (id, probed_at) VALUES (1, ?)')
    this.#key = db.prepare('SELECT 1 FROM pull_key WHERE key = ?')
    this.#entries.read()
  }

  open(): OpenedDisk {
    return { ...this.#entries.read(), nextIds: this.#images.nextIds() }
  }

  /** This process is the only writer: what a key is found to be before the transaction, it is in the transaction. */
  append({ number, body, newRows, newKeys }: Appended): void {
    const known = newKeys.filter((key) => this.#key.get(key) !== undefined)
    if (known.length > 0) throw new KnownKeys(known)
    this.transaction(() => {
      this.#entries.append(number, body)
      if (newRows.length > 0) this.#newRows.insert(newRows)
    })
  }

  flush(images: Images, upTo: number): void {
    this.#unsynced(() => {
      this.#images.write(images)
      this.#entries.forget(upTo)
    })
  }

  stage(rows: readonly PartitionDescriptor[]): void {
    this.#unsynced(() => this.#newRows.insert(rows))
  }

  unstage(ids: StagedIds): void {
    this.#unsynced(() => this.#newRows.remove(ids))
  }

  probe(now: number): void {
    this.transaction(() => this.#probe.run(now))
  }

  /**
   * For what can be lost as long as everything after it is lost, too, which is what the log of SQLite guarantees: rows are
   * flushed from entries that are durable, and staged rows count by an entry that comes later. That one is synced, and with
   * it all that is before it in the log.
   */
  #unsynced(work: () => void): void {
    this.#syncing('NORMAL')
    this.#run(work)
  }

  transaction<Result>(work: () => Result): Result {
    this.#syncing('FULL')
    return this.#run(work)
  }

  /** Before each transaction: one that failed leaves nothing behind for the next. */
  #syncing(mode: 'FULL' | 'NORMAL'): void {
    if (this.#mode === mode) return
    this.#db.exec(`PRAGMA synchronous = ${mode}`)
    this.#mode = mode
  }

  #run<Result>(work: () => Result): Result {
    this.#begin.run()
    try {
      const result = work()
      this.#commit.run()
      return result
    } catch (error) {
      // A failed commit may or may not have ended the transaction.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      throw error
    }
  }
}
