import type { DatabaseSync } from 'node:sqlite'
import type { DeferredSteps } from './deferred-rows.ts'
import type { LedgerRows } from './ledger-rows.ts'

/** What one transaction changed, as the parameters of the statements that write it into the rows. */
export type JournalEntry = DeferredSteps & LedgerRows

/**
 * Makes a transaction durable by one appended row. The rows of partitions, lanes and tasks follow later, many
 * transactions at a time: a partition that is leased and finished in between is written once, and never enters the
 * index of leases.
 */
export class Journal {
  readonly #sql: ReturnType<typeof prepare>
  #seq = 0
  #length = 0

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  /** Characters appended since it was last cleared. */
  get length(): number {
    return this.#length
  }

  append(entry: JournalEntry): void {
    const text = JSON.stringify(entry)
    this.#seq += 1
    this.#sql.append.run(this.#seq, text)
    this.#length += text.length
  }

  /** In the order in which they were committed. */
  entries(): JournalEntry[] {
    return this.#sql.entries.all().map(({ entry }) => JSON.parse(entry as string) as JournalEntry)
  }

  clear(): void {
    this.#sql.clear.run()
    this.#seq = 0
    this.#length = 0
  }
}

function prepare(db: DatabaseSync) {
  return {
    append: db.prepare('INSERT INTO journal (seq, entry) VALUES (?, ?)'),
    entries: db.prepare('SELECT entry FROM journal ORDER BY seq'),
    clear: db.prepare('DELETE FROM journal'),
  }
}
