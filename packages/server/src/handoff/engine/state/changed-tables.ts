/** The most that is kept: who has not read for longer looks at everything. */
const KEPT = 1000

/** Tables of which something may be served earlier than before, by name, the latest last. */
export class ChangedTables {
  readonly #names: string[] = []
  #dropped = 0

  get end(): number {
    return this.#dropped + this.#names.length
  }

  add(name: string): void {
    this.#names.push(name)
    if (this.#names.length >= 2 * KEPT) this.#dropped += this.#names.splice(0, KEPT).length
  }

  /** What came after a position. Null if it is more than `most`, or not kept any more. */
  since(position: number, most: number): readonly string[] | null {
    if (position < this.#dropped || this.end - position > most) return null
    return this.#names.slice(position - this.#dropped)
  }
}
