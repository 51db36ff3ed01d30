import type { LinePosition } from '../../disk.ts'
import type { StoredPartition } from '../../stored.ts'

/** What of a partition tells its place in a line. */
type Waiting = Pick<StoredPartition, 'id' | 'line' | 'dueAt'>

/**
 * The beginning of one of a lane's lines, in memory. Everything on the disk up to `loadedTo` is among `items`; beyond it
 * `items` has only what changed lately and may lack others, so nothing beyond it can be first.
 */
export class LineBuffer<Partition extends Waiting> {
  /** In the order of the line. */
  readonly items: Partition[] = []
  loadedTo: LinePosition | null = null
  /** Nothing of the line is on the disk that is not here. */
  isComplete: boolean

  constructor(isComplete: boolean) {
    this.isComplete = isComplete
  }

  /** The first of the line; undefined where a load has to tell, or there is none. */
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

  /** To be called before its place changes. One that is not in memory is not here. */
  remove(partition: Partition): void {
    const at = this.#indexOf(placeOf(partition))
    if (this.items[at] === partition) this.items.splice(at, 1)
  }

  /** Fills in rows that were read behind `loadedTo`; `isEnd` if there are no more. */
  fill(partitions: readonly Partition[], last: LinePosition | null, isEnd: boolean): void {
    for (const partition of partitions) this.add(partition)
    this.isComplete = isEnd
    if (last !== null) this.loadedTo = last
  }

  /** Forgets what is far from the front; what is not on the disk yet must stay. Returns what was dropped. */
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

/** Fresh and released partitions go by arrival, retries by the time at which they became due. */
const placeOf = ({ line, dueAt, id }: Waiting): LinePosition => ({
  dueAt: line === 'retry' ? (dueAt ?? 0) : 0,
  id,
})

const comparePlaces = (a: LinePosition, b: LinePosition): number => a.dueAt - b.dueAt || a.id - b.id
