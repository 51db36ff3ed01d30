import type { DuePosition } from '../../views/queries.ts'
import { lowerBound } from './lower-bound.ts'

/** The fields of a partition that its place depends on. */
interface Buffered {
  readonly id: number
  readonly dueAt: number | null
  bufferCount: number
}

/**
 * The first of the partitions that wait in a lane, in memory: those that came back, or those that did not.
 * `items` contains everything that is on disk up to `loadedTo`. Beyond that it contains only recent changes
 * and may have gaps, so an item beyond it is never the first.
 */
export class WaitingBuffer<Partition extends Buffered> {
  /** In order. */
  readonly items: Partition[] = []
  loadedTo: DuePosition | null = null
  /** Every such partition on disk is also in memory. */
  isComplete: boolean

  constructor(isComplete: boolean) {
    this.isComplete = isComplete
  }

  /** Undefined if nothing waits, or rows must be loaded first. */
  get first(): Partition | undefined {
    const first = this.items[0]
    if (first === undefined || this.isComplete) return first
    return this.loadedTo !== null && comparePositions(positionOf(first), this.loadedTo) <= 0
      ? first
      : undefined
  }

  add(partition: Partition): void {
    const { items } = this
    partition.bufferCount += 1
    const last = items.at(-1)
    if (last === undefined || comparePositions(positionOf(last), positionOf(partition)) < 0)
      items.push(partition)
    else items.splice(this.#indexOf(positionOf(partition)), 0, partition)
  }

  /** Call it before the partition's position changes. Partitions that are not buffered are ignored. */
  remove(partition: Partition): void {
    const index = this.items[0] === partition ? 0 : this.#indexOf(positionOf(partition))
    if (this.items[index] !== partition) return
    if (index === 0) this.items.shift()
    else this.items.splice(index, 1)
    partition.bufferCount -= 1
  }

  /** Adds rows that were read after `loadedTo`. `isEnd` is true if there are no more. */
  fill(partitions: readonly Partition[], last: DuePosition | null, isEnd: boolean): void {
    for (const partition of partitions) this.add(partition)
    this.isComplete = isEnd
    if (last !== null) this.loadedTo = last
  }

  /** Drops the items that may leave. They are read from disk when they are next. */
  clear(mayLeave: (partition: Partition) => boolean): Partition[] {
    const dropped: Partition[] = []
    const kept: Partition[] = []
    for (const partition of this.items) (mayLeave(partition) ? dropped : kept).push(partition)
    if (dropped.length === 0) return dropped
    this.items.length = 0
    for (const partition of kept) this.items.push(partition)
    for (const partition of dropped) partition.bufferCount -= 1
    this.loadedTo = null
    this.isComplete = false
    return dropped
  }

  #indexOf(position: DuePosition): number {
    return lowerBound(this.items, position, byPosition)
  }
}

/** Partitions that did not come back have no time and are ordered by arrival. */
export const positionOf = ({ dueAt, id }: Pick<Buffered, 'dueAt' | 'id'>): DuePosition => ({
  dueAt: dueAt ?? 0,
  id,
})

export const comparePositions = (a: DuePosition, b: DuePosition): number => a.dueAt - b.dueAt || a.id - b.id

const byPosition = ({ dueAt, id }: Pick<Buffered, 'dueAt' | 'id'>, position: DuePosition): number =>
  (dueAt ?? 0) - position.dueAt || id - position.id
