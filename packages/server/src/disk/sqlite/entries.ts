import type { DatabaseSync } from 'node:sqlite'
import type { OpenedDisk } from '../../handoff/disk.ts'
import { arrayQuery } from './query.ts'

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
 * last flushed entry.
 */
export class Entries {
  readonly #sql: ReturnType<typeof prepare>
  /** Reused for each slot. After the size of an entry it still has bytes of earlier ones. */
  readonly #body = Buffer.alloc(SLOT_BYTES)
  #live: EntrySlots[] = []
  #free: number[] = []
  #slots = 0
  #last = 0

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
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

function prepare(db: DatabaseSync) {
  return {
    flushed: arrayQuery<[number]>(db, 'SELECT flushed FROM head WHERE id = 1'),
    slots: arrayQuery<SlotRow>(db, 'SELECT slot, number, part, size, body FROM entry_slot'),
    flush: db.prepare('UPDATE head SET flushed = max(flushed, ?) WHERE id = 1'),
    overwrite: db.prepare('UPDATE entry_slot SET number = ?, part = ?, size = ?, body = ? WHERE slot = ?'),
    add: db.prepare('INSERT INTO entry_slot (slot, number, part, size, body) VALUES (?, ?, ?, ?, ?)'),
    remove: db.prepare('DELETE FROM entry_slot WHERE slot = ?'),
  }
}
