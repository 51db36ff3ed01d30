/** Checkpoints that are not flushed yet. All others are read from the disk. */
export class Checkpoints {
  /** By partition. Those changed longest ago are first. */
  readonly #unflushed = new Map<number, UnflushedCheckpoint>()

  get(partition: number): UnflushedCheckpoint | undefined {
    return this.#unflushed.get(partition)
  }

  /** Undefined: it was cleared. */
  set(partition: number, checkpoint: UnflushedCheckpoint | undefined): void {
    this.#unflushed.delete(partition)
    if (checkpoint !== undefined) this.#unflushed.set(partition, checkpoint)
  }

  flushed(upTo: number): void {
    for (const [partition, { changedIn }] of this.#unflushed) {
      if (changedIn > upTo) return
      this.#unflushed.delete(partition)
    }
  }
}

export interface UnflushedCheckpoint {
  readonly text: string
  readonly changedIn: number
}
