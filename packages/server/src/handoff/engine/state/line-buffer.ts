import type { LinePosition } from '../../disk.ts'
import type { StoredPartition } from '../../partition.ts'

/** The fields that determine a partition's position in its line. */
type Waiting = Pick<StoredPartition, 'id' | 'line' | 'dueAt'>

/**
 * The beginning of one of a lane's lines, in memory. `items` contains everything that is on disk up to
 * `loadedTo`. Beyond that it contains only recent changes and may have gaps, so an item beyond it is never
 * the first of the line.
 */
export class LineBuffer<Partition extends Waiting> {
  /** In line order. */
  readonly items: Partition[] = []
  loadedTo: LinePosition | null = null
  /** Every partition of the line on disk is also in memory. */
  isComplete: boolean

  constructor(isComplete: boolean) {
    this.isComplete = isComplete
  }

  /** The first partition of the line. Undefined if the line is empty or must be loaded first. */
  get first(): Partition | undefined {
    const first = this.items[0]
    if (first === undefined || this.isComplete) return first
    return this.loadedTo !== null && comparePlaces(placeOf(first), this.loadedTo) <= 0 ? first : undefined
  }

  add(partition: Partition): void {
    const { items } = this
    const last = items.at(-1)
    if (last === undefined || comparePlaces(placeOf(last), placeOf(partition)) < 0) items.push(partition)
    else items.splice(this.#indexOf(placeOf(partition)), 0, partition)
  }

  /** Call it before the partition's position changes. Partitions that are not buffered are ignored. */
  remove(partition: Partition): void {
    const at = this.#indexOf(placeOf(partition))
    if (this.items[at] === partition) this.items.splice(at, 1)
  }

  /** Adds rows that were read after `loadedTo`. `isEnd` is true if there are no more. */
  fill(partitions: readonly Partition[], last: LinePosition | null, isEnd: boolean): void {
    for (const partition of partitions) this.add(partition)
    this.isComplete = isEnd
    if (last !== null) this.loadedTo = last
  }

  /** Drops partitions far from the front, except those not on disk yet. Returns the dropped partitions. */
  trim(keep: number, isClean: (partition: Partition) => boolean): Partition[] {
    const { items } = this
    if (items.length <= keep) return []
    const kept = items[keep - 1]
    if (kept === undefined) return []
    const dropped: Partition[] = []
    const place = placeOf(kept)
    const rest = items.splice(keep)
    for (const partition of rest) (isClean(partition) ? dropped : items).push(partition)
    const isBefore = this.isComplete || (this.loadedTo !== null && comparePlaces(place, this.loadedTo) < 0)
    if (dropped.length > 0 && isBefore) {
      this.loadedTo = place
      this.isComplete = false
    }
    return dropped
  }

  #indexOf(place: LinePosition): number {
    const { items } = this
    let low = 0
    let high = items.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (comparePlaces(placeOf(items[middle] as Partition), place) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Fresh and released partitions are ordered by arrival, retries by due time. */
const placeOf = ({ line, dueAt, id }: Waiting): LinePosition => ({
  dueAt: line === 'retry' ? (dueAt ?? 0) : 0,
  id,
})

const comparePlaces = (a: LinePosition, b: LinePosition): number => a.dueAt - b.dueAt || a.id - b.id
