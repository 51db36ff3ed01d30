import type { Policy } from '../../../handoff/rules/policy.ts'
import type { Transactions } from '../session/transactions.ts'
import type { Note } from './notes.ts'
import { type WrittenUp, writeUp } from './write-up.ts'

/** How long what is noted may wait to be written up. Whoever looks has it written up first. */
const WRITE_UP_MILLIS = 100
/**
 * With so many partitions in the notes they are written up at once: whoever ends a stint waits for it. Fewer would be written
 * twice more often: batches of 50 settle after tens of milliseconds, and until then a lease has to be written as one that runs.
 */
const MOST_NOTED = 4000

/** Notes whose rows say otherwise. */
export class UnwrittenNotes {
  readonly #transactions: Transactions
  readonly #policy: Policy
  readonly #written: (notes: readonly Note[], written: WrittenUp | undefined) => void
  readonly #isDue: () => void
  #notes: Note[] = []
  #noted = 0
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #isAbandoned = false

  /** `written` is told what came of it, `isDue` when it is time for `writeUp`. */
  constructor(
    transactions: Transactions,
    policy: Policy,
    {
      written,
      isDue,
    }: { written: (notes: readonly Note[], written: WrittenUp | undefined) => void; isDue: () => void },
  ) {
    this.#transactions = transactions
    this.#policy = policy
    this.#written = written
    this.#isDue = isDue
  }

  add(note: Note): void {
    // Written up without those before it, its settlements would find no leases and be lost.
    if (this.#isAbandoned) return
    this.#notes.push(note)
    this.#noted += note.given.length
    this.#schedule()
  }

  /** Writing up does not keep up: whoever would add to it has to wait for that. */
  get areTooMany(): boolean {
    return this.#noted >= 2 * MOST_NOTED
  }

  /** All that are there now are written up when it resolves. */
  async writeUp(): Promise<void> {
    // The one under way took those that were there when it began: the others are left to the next one.
    await this.#writing
    await this.writeUpSome()
  }

  /** Who comes while that is under way waits for its end. */
  writeUpSome(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined
      // Their time may have come meanwhile.
      if (this.#notes.length > 0) this.#schedule()
    })
    return this.#writing
  }

  /** They are left to whoever comes next, and so are those that are added after this. */
  abandon(): void {
    this.#isAbandoned = true
    this.#notes = []
    this.#noted = 0
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    if (this.#noted >= MOST_NOTED) this.#isDue()
    else this.#timer ??= setTimeout(this.#isDue, WRITE_UP_MILLIS)
  }

  async #write(): Promise<void> {
    const notes = this.#notes
    this.#notes = []
    this.#noted = 0
    if (notes.length === 0) return
    let written: WrittenUp | undefined
    try {
      written = await this.#transactions.run((tx) => writeUp(tx, notes, this.#policy))
    } catch (error) {
      // At once: those after them must not be written up first.
      this.abandon()
      throw error
    }
    this.#written(notes, written)
  }
}
