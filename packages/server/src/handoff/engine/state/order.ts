import type { OrderPosition } from '../../disk.ts'
import { mayServe } from '../../rules/lane-rules.ts'
import type { StoredTask } from '../../stored.ts'

/** What of a lane, or of a lane's table, the order goes by. */
export interface OrderedLane<Lane> {
  readonly id: number
  readonly level: number
  turn: bigint | null
  readonly owner: Pick<
    StoredTask,
    'paused' | 'cancelled' | 'levelBarrier' | 'openLevel' | 'settings' | 'partitions'
  >
  /** Those of its task that were met at the front of the order while they may not serve. */
  readonly aside: Set<Lane>
  /** Counts the lanes of its level that are in the order. */
  readonly time: { queued: number }
  /** Its place in the heap; -1 outside of it. */
  heapIndex: number
}

/**
 * Whose turn it is: lanes with work in the order (level, turn, id), as a heap of those in memory. All lanes on the disk
 * up to `loadedTo` are in memory, or belong to a task that may not serve; beyond it others may come first.
 */
export class Order<Lane extends OrderedLane<Lane>> {
  readonly #heap: Lane[] = []
  loadedTo: OrderPosition | null = null
  isComplete = false

  /** The lane whose turn it is; null where a load has to tell, undefined where nothing may be handed out. */
  front(): Lane | null | undefined {
    while (true) {
      const lane = this.#heap[0]
      if (lane === undefined) return this.isComplete ? undefined : null
      if (!this.isComplete && (this.loadedTo === null || comparePositions(lane, this.loadedTo) > 0))
        return null
      if (mayServe(lane.owner, lane.level)) return lane
      this.remove(lane)
      lane.aside.add(lane)
    }
  }

  get size(): number {
    return this.#heap.length
  }

  /** The first lanes of the heap, in no particular order beyond that: where the next partitions will come from. */
  ahead(count: number): readonly Lane[] {
    return this.#heap.length <= count ? this.#heap : this.#heap.slice(0, count)
  }

  /** Brings a lane to its place after its turn changed. */
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

  /** One that was set aside comes back. It may have been forgotten meanwhile, and read again. */
  reopen(lane: Lane): void {
    lane.aside.delete(lane)
    this.put(lane)
  }

  /** All leave it, also those set aside. */
  clear(): void {
    for (const lane of this.#heap) {
      lane.heapIndex = -1
      lane.time.queued -= 1
    }
    this.#heap.length = 0
    this.rewind()
  }

  /** What is on the disk is read from the beginning; what is in memory stays as it is. */
  rewind(): void {
    this.loadedTo = null
    this.isComplete = false
  }

  /** Whether lanes of this level may be on the disk that are not in memory. */
  isLoadedPast(level: number): boolean {
    return this.isComplete || (this.loadedTo !== null && this.loadedTo.level > level)
  }

  /** Takes all but the first so many out, to be dropped from memory. They are found again behind `loadedTo`. */
  cut(keep: number, isKept: (lane: Lane) => boolean = () => false): Lane[] {
    if (this.#heap.length <= keep) return []
    const sorted = this.#heap.toSorted(comparePositions)
    const last = sorted[keep - 1] as Lane
    const dropped: Lane[] = []
    this.#heap.length = 0
    // In their order, lanes are a heap.
    for (const [at, lane] of sorted.entries())
      if (at < keep || isKept(lane)) lane.heapIndex = this.#heap.push(lane) - 1
      else {
        lane.heapIndex = -1
        lane.time.queued -= 1
        dropped.push(lane)
      }
    // Where nothing was read yet, what is here is not the beginning of the order.
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

type Placed = Pick<OrderedLane<never>, 'id' | 'level' | 'turn'>

const positionOf = ({ level, turn, id }: Placed): OrderPosition => ({
  level,
  turn: turn ?? 0n,
  lane: id,
})

/** Ties go to the older lane. */
function comparePositions(a: Placed, b: Placed | OrderPosition): number {
  if (a.level !== b.level) return a.level - b.level
  const turn = a.turn ?? 0n
  const other = b.turn ?? 0n
  if (turn !== other) return turn < other ? -1 : 1
  return a.id - ('id' in b ? b.id : b.lane)
}
