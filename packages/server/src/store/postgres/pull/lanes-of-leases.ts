/** So many leases are remembered; a node that gave more and never heard of them begins anew. */
const REMEMBERED = 200_000

/**
 * On which lanes the partitions are that this node has leased out. Whoever settles names the partition alone, and that
 * none of their tasks is cancelled has to be looked up by lane: finding the lanes by their partitions was 3.5 of 39 microseconds
 * that a statement took per partition. What is not known, or known by another node, the statement finds.
 */
export class LanesOfLeases {
  readonly #lanes = new Map<number, number>()

  remember(partition: number, lane: number): void {
    if (this.#lanes.size >= REMEMBERED) this.#lanes.clear()
    this.#lanes.set(partition, lane)
  }

  /** The lanes of partitions that are settled now, each once; undefined when one is not known. */
  take(partitions: Iterable<number>): number[] | undefined {
    const lanes = new Set<number>()
    let areKnown = true
    for (const partition of partitions) {
      const lane = this.#lanes.get(partition)
      if (lane === undefined) areKnown = false
      else lanes.add(lane)
      this.#lanes.delete(partition)
    }
    return areKnown ? [...lanes] : undefined
  }
}
