/** Of so many partitions it is remembered how often they were given back; the oldest are forgotten. */
const REMEMBERED = 10_000

/** How often in a row this worker has given each partition back. */
export class GiveBacks {
  readonly #limit: number
  readonly #counts = new Map<string, number>()

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Counts another one; true where that is more than a partition may be given back. */
  isTooMany(partition: string): boolean {
    const count = (this.#counts.get(partition) ?? 0) + 1
    this.#counts.delete(partition)
    if (count > this.#limit) return true
    this.#counts.set(partition, count)
    const [oldest] = this.#counts.keys()
    if (this.#counts.size > REMEMBERED && oldest !== undefined) this.#counts.delete(oldest)
    return false
  }

  forget(partition: string): void {
    this.#counts.delete(partition)
  }
}
