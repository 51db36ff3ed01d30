import { isTableBlocked } from '../../rules/policy.ts'
import { mayServe } from '../../rules/task.ts'
import { Choice } from './choice.ts'
import { Heap, type InHeap } from './heap.ts'
import type { InTable, Lane, Table } from './memory-rows.ts'
import type { Order } from './order.ts'

interface Candidate extends InHeap {
  readonly of: InTable
  lane: Lane
  tag: bigint
}

/** What a choice has read of the arrivals of a table. What it has not read has no tag: it starts at the virtual time. */
interface Read {
  readonly table: Table
  /** The last number, by level. */
  readonly upTo: Map<number, number>
  readonly heap: Heap<Candidate>
  readonly candidates: Map<InTable, Candidate>
}

/**
 * A choice of tables reads the arrivals of each only until it has found the next lane. What has changed since it
 * was read is noticed when it comes to the front.
 */
export class TableChoice extends Choice {
  readonly #tables: readonly string[]
  readonly #reads = new Map<string, Read>()

  constructor(order: Order, tables: readonly string[]) {
    super(order, { tables, tasks: null })
    this.#tables = tables
  }

  override get size(): number {
    let size = super.size
    for (const { upTo, candidates } of this.#reads.values()) size += upTo.size + candidates.size
    return size
  }

  next(): Lane | undefined {
    let first: Candidate | undefined
    let isWaiting = false
    for (const name of this.#tables) {
      const table = this.order.tables.get(name)
      if (table === undefined || table.waiting.partitions === 0) continue
      isWaiting = true
      const candidate = isTableBlocked(table) ? undefined : this.#firstOf(this.#readOf(name, table))
      if (candidate === undefined) continue
      if (first === undefined || compareCandidates(candidate, first) < 0) first = candidate
    }
    if (!isWaiting) this.drain()
    return first?.lane
  }

  ahead(count: number): Lane[] {
    const lanes: Lane[] = []
    for (const { table, upTo, heap } of this.#reads.values()) {
      const { arrivals } = table
      for (const { lane } of heap.items.slice(0, count - lanes.length)) lanes.push(lane)
      const ofLevel = arrivals.from(0)
      let next = ofLevel?.after(upTo.get(ofLevel.level) ?? 0)
      while (next !== undefined && lanes.length < count) {
        if (next.of.lane !== undefined) lanes.push(next.of.lane)
        next = ofLevel?.after(next.number)
      }
    }
    return lanes
  }

  protected override drain(): void {
    super.drain()
    this.#reads.clear()
  }

  /** A table that was dropped in the meantime is read from its beginning. */
  #readOf(name: string, table: Table): Read {
    let read = this.#reads.get(name)
    if (read?.table !== table) {
      read = { table, upTo: new Map(), heap: new Heap(compareCandidates), candidates: new Map() }
      this.#reads.set(name, read)
    }
    return read
  }

  #firstOf(read: Read): Candidate | undefined {
    const { arrivals } = read.table
    let ofLevel = arrivals.from(0)
    while (ofLevel !== undefined) {
      const { level } = ofLevel
      const first = this.#firstRead(read)
      if (first !== undefined) {
        const isFirst = first.lane.level === level && first.tag <= this.virtualOf(level)
        if (isFirst || first.lane.level < level) return first
      }
      const next = ofLevel.after(read.upTo.get(level) ?? 0)
      if (next === undefined) ofLevel = arrivals.from(level + 1)
      else {
        read.upTo.set(level, next.number)
        this.#add(read, next.of)
      }
    }
    return this.#firstRead(read)
  }

  #firstRead(read: Read): Candidate | undefined {
    const { heap, candidates } = read
    while (true) {
      const { first } = heap
      if (first === undefined) return undefined
      const { of } = first
      const { lane } = of
      if (lane === undefined || of.arrival === null) {
        heap.remove(first)
        candidates.delete(of)
      } else if (!mayServe(lane.parentTask, lane.level)) this.order.withdraw(of)
      else if (lane === first.lane && (this.tagOf(lane) ?? first.tag) <= first.tag) return first
      else this.#place(read, first, lane)
    }
  }

  #add(read: Read, of: InTable): void {
    const { lane } = of
    if (lane === undefined) return
    const known = read.candidates.get(of)
    if (known !== undefined) this.#place(read, known, lane)
    else {
      const candidate = { of, lane, tag: this.startOf(lane), heapIndex: -1 }
      read.candidates.set(of, candidate)
      read.heap.put(candidate)
    }
  }

  /** A lane that waits keeps the tag with which it began to wait, although the virtual time may be past it. */
  #place({ heap }: Read, candidate: Candidate, lane: Lane): void {
    if (lane !== candidate.lane) candidate.tag = this.startOf(lane)
    else candidate.tag = larger(this.tagOf(lane) ?? candidate.tag, candidate.tag)
    candidate.lane = lane
    heap.put(candidate)
  }
}

const compareCandidates = (a: Candidate, b: Candidate): number =>
  a.lane.level - b.lane.level || (a.tag === b.tag ? a.lane.id - b.lane.id : a.tag < b.tag ? -1 : 1)

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b)
