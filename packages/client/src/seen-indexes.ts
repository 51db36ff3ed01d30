/**
 * Which numbers occurred, as ranges. Producers count upwards, so a level of ten million partitions is one range and
 * not ten million entries.
 */
export class SeenIndexes {
  /** Disjoint, ascending, never adjacent. */
  readonly #ranges: { first: number; last: number }[] = []

  /** False when the number had occurred before. */
  add(index: number): boolean {
    const at = this.#firstEndingAtOrAfter(index)
    const next = this.#ranges[at]
    if (next !== undefined && next.first <= index) return false
    const previous = this.#ranges[at - 1]
    const joinsPrevious = previous !== undefined && previous.last + 1 === index
    const joinsNext = next !== undefined && next.first - 1 === index
    if (joinsPrevious && joinsNext) {
      previous.last = next.last
      this.#ranges.splice(at, 1)
    } else if (joinsPrevious) previous.last = index
    else if (joinsNext) next.first = index
    else this.#ranges.splice(at, 0, { first: index, last: index })
    return true
  }

  #firstEndingAtOrAfter(index: number): number {
    const ranges = this.#ranges
    const newest = ranges.at(-1)
    if (newest === undefined || newest.last < index) return ranges.length
    let low = 0
    let high = ranges.length - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if ((ranges[middle]?.last ?? 0) < index) low = middle + 1
      else high = middle
    }
    return low
  }
}
