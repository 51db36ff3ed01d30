/** Keeps a store supplied: a measurement on an empty backlog would measure empty claims. */
export class Backlog {
  readonly #fill: (partitions: number) => Promise<unknown>
  #ready = 0

  constructor(fill: (partitions: number) => Promise<unknown>) {
    this.#fill = fill
  }

  /** Room for a measurement of `seconds`; half as much again, since a round may be faster than any before. */
  async ensureFor(rate: number, seconds: number): Promise<void> {
    const missing = Math.ceil(rate * seconds * 1.5 + 2_000) - this.#ready
    if (missing <= 0) return
    await this.#fill(missing)
    this.#ready += missing
  }

  /** For stores that can tell, and where less than what was taken can be counted. */
  holds(partitions: number): void {
    this.#ready = partitions
  }

  taken(partitions: number): void {
    this.#ready -= partitions
  }
}
