import type { OrderPosition } from '../../disk.ts'
import { mayServe } from '../../rules/task.ts'
import type { StoredTask } from '../../stored.ts'

/** The fields of a lane, or of a lane's table, that the order uses. */
export interface HeapLane<Lane> {
  readonly id: number
  readonly level: number
  turn: bigint | null
  readonly parentTask: Pick<
    StoredTask,
    'paused' | 'cancelled' | 'levelBarrier' | 'openLevel' | 'settings' | 'partitions'
  >
  /** Lanes of its task that reached the front of the order while they may not be served. */
  readonly aside: Set<Lane>
  /** Counts the lanes of its level that are in the order. */
  readonly time: { queued: number }
  /** Its index in the heap, or -1. */
  heapIndex: number
}

/**
 * Determines which lane is next: a heap of the lanes in memory that have work, ordered by (level, turn, id).
 * All lanes on disk up to `loadedTo` are in memory, or belong to a task that may not be served. Beyond it,
 * lanes on disk may come first.
 */
export class LaneHeap<Lane extends HeapLane<Lane>> {
  readonly #heap: Lane[] = []
  loadedTo: OrderPosition | null = null
  isComplete = false

  /**
   * The next lane. Null if lanes must be loaded first, undefined if nothing may be handed out.
   */
  front(): Lane | null | undefined {
    while (true) {
      const lane = this.#heap[0]
      if (lane === undefined) return this.isComplete ? undefined : null
      if (!this.isComplete && (this.loadedTo === null || comparePositions(lane, this.loadedTo) > 0))
        return null
      if (mayServe(lane.parentTask, lane.level)) return lane
      this.remove(lane)
      lane.aside.add(lane)
    }
  }

  get size(): number {
    return this.#heap.length
  }

  /** The first lanes of the heap, otherwise unordered: the likely sources of the next partitions. */
  ahead(count: number): readonly Lane[] {
    return this.#heap.length <= count ? this.#heap : this.#heap.slice(0, count)
  }

  /** Moves a lane to its position after its turn changed. */
  put(lane: Lane): void {
    if (lane.turn === null) {
      this.remove(lane)
      lane.aside.delete(lane)
    } else if (lane.heapIndex >= 0) this.#sift(lane)
    else if (!lane.aside.has(lane)) {
      lane.heapIndex = this.#heap.push(lane) - 1
      lane.time.queued += 1
      this.#sift(lane)
    }
  }

  remove(lane: Lane): void {
    const at = lane.heapIndex
    if (at < 0) return
    const last = this.#heap.pop() as Lane
    lane.heapIndex = -1
    lane.time.queued -= 1
    if (last === lane) return
    this.#heap[at] = last
    last.heapIndex = at
    this.#sift(last)
  }

  /**
   * Returns a lane that was set aside to the order. It may have been evicted and loaded again in the
   * meantime.
   */
  reopen(lane: Lane): void {
    lane.aside.delete(lane)
    this.put(lane)
  }

  /** Removes all lanes from the heap. */
  clear(): void {
    for (const lane of this.#heap) {
      lane.heapIndex = -1
      lane.time.queued -= 1
    }
    this.#heap.length = 0
    this.rewind()
  }

  /** Reads the disk from the start again. Lanes in memory stay as they are. */
  rewind(): void {
    this.loadedTo = null
    this.isComplete = false
  }

  /** Whether the first lanes have been loaded. */
  get isBegun(): boolean {
    return this.isComplete || this.loadedTo !== null
  }

  /** Whether all lanes of this level have been loaded. */
  isLoadedPast(level: number): boolean {
    return this.isComplete || (this.loadedTo !== null && this.loadedTo.level > level)
  }

  /**
   * Removes all but the first `keep` lanes, to be evicted from memory. They can be loaded again, after
   * `loadedTo`.
   */
  cut(keep: number, isKept: (lane: Lane) => boolean = () => false): Lane[] {
    if (this.#heap.length <= keep) return []
    const sorted = this.#heap.toSorted(comparePositions)
    const last = sorted[keep - 1] as Lane
    const dropped: Lane[] = []
    this.#heap.length = 0
    // A sorted array is a valid heap.
    for (const [at, lane] of sorted.entries())
      if (at < keep || isKept(lane)) lane.heapIndex = this.#heap.push(lane) - 1
      else {
        lane.heapIndex = -1
        lane.time.queued -= 1
        dropped.push(lane)
      }
    // If nothing was loaded yet, the lanes in memory are not the start of the order.
    const isBefore = this.isComplete || (this.loadedTo !== null && comparePositions(last, this.loadedTo) < 0)
    if (isBefore) {
      this.loadedTo = positionOf(last)
      this.isComplete = false
    }
    return dropped
  }

  #sift(lane: Lane): void {
    const heap = this.#heap
    let at = lane.heapIndex
    while (at > 0) {
      const up = (at - 1) >> 1
      const parent = heap[up] as Lane
      if (comparePositions(parent, lane) <= 0) break
      heap[at] = parent
      parent.heapIndex = at
      at = up
    }
    while (true) {
      let down = 2 * at + 1
      if (down >= heap.length) break
      if (down + 1 < heap.length && comparePositions(heap[down + 1] as Lane, heap[down] as Lane) < 0)
        down += 1
      const child = heap[down] as Lane
      if (comparePositions(lane, child) <= 0) break
      heap[at] = child
      child.heapIndex = at
      at = down
    }
    heap[at] = lane
    lane.heapIndex = at
  }
}

type Placed = Pick<HeapLane<never>, 'id' | 'level' | 'turn'>

const positionOf = ({ level, turn, id }: Placed): OrderPosition => ({
  level,
  turn: turn ?? 0n,
  lane: id,
})

/** If turns are equal, the older lane comes first. */
function comparePositions(a: Placed, b: Placed | OrderPosition): number {
  if (a.level !== b.level) return a.level - b.level
  const turn = a.turn ?? 0n
  const other = b.turn ?? 0n
  if (turn !== other) return turn < other ? -1 : 1
  return a.id - ('id' in b ? b.id : b.lane)
}
