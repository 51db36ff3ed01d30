import type { DatabaseSync } from 'node:sqlite'
import type { DeferredSteps } from './deferred-rows.ts'
import type { LedgerRows } from './ledger-rows.ts'
import type { KeyRow } from './pull-keys.ts'

/** What one transaction changed, as the parameters of the statements that write it into the rows. */
export type JournalEntry = DeferredSteps & LedgerRows & { readonly keys: readonly KeyRow[] }

/**
 * A row of this length fills a page of its own, and one that is written over by another of the same length stays
 * where it is: a commit then changes one page, where appending changed four.
 */
const SLOT_LENGTH = 4000

const NUMBER_LENGTH = 15
const CONTINUED = '+'
const COMPLETE = '.'
const TEXT_LENGTH = SLOT_LENGTH - NUMBER_LENGTH - 1

/**
 * Makes a transaction durable by one row. The rows of partitions, lanes and tasks follow later, many transactions at
 * a time: a partition that is leased and finished in between is written once, and never enters the index of leases.
 *
 * Slots are used from the first on again whenever the journal is cleared. Each begins with its number in a sequence
 * that never starts anew; what follows a slot belongs to the journal if its number is the next one. An entry that is
 * too long for one slot goes on in the following.
 */
export class Journal {
  readonly #sql: ReturnType<typeof prepare>
  #number = 0
  #slots = 0

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  /** Slots in use since it was last cleared. */
  get slots(): number {
    return this.#slots
  }

  append(entry: JournalEntry): void {
    const text = JSON.stringify(entry)
    let at = 0
    for (; text.length - at > TEXT_LENGTH; at += TEXT_LENGTH)
      this.#fill(this.#slots, CONTINUED + text.slice(at, at + TEXT_LENGTH))
    this.#fill(this.#slots, COMPLETE + text.slice(at))
  }

  /** In the order in which they were committed. Whatever is appended afterwards follows them. */
  read(): JournalEntry[] {
    const entries: JournalEntry[] = []
    let text = ''
    this.#slots = 0
    for (const row of this.#sql.slots.iterate()) {
      const slot = row['entry'] as string
      const number = Number(slot.slice(0, NUMBER_LENGTH))
      if (this.#slots > 0 && number !== this.#number + 1) break
      this.#number = number
      this.#slots += 1
      text += slot.slice(NUMBER_LENGTH + 1)
      if (slot[NUMBER_LENGTH] === CONTINUED) continue
      if (text.trimEnd() !== '') entries.push(JSON.parse(text) as JournalEntry)
      text = ''
    }
    return entries
  }

  /** The first slot's new number cuts off what stands in the others. */
  clear(): void {
    if (this.#slots === 0) return
    this.#fill(0, COMPLETE)
    this.#slots = 0
  }

  #fill(slot: number, text: string): void {
    this.#number += 1
    const row = (String(this.#number).padStart(NUMBER_LENGTH, '0') + text).padEnd(SLOT_LENGTH)
    if (this.#sql.overwrite.run(row, slot).changes === 0) this.#sql.add.run(slot, row)
    this.#slots = slot + 1
  }
}

function prepare(db: DatabaseSync) {
  return {
    overwrite: db.prepare('UPDATE journal SET entry = ? WHERE slot = ?'),
    add: db.prepare('INSERT INTO journal (slot, entry) VALUES (?, ?)'),
    slots: db.prepare('SELECT entry FROM journal ORDER BY slot'),
  }
}
