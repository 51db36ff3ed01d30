import { larger } from '../../rules/fair-order.ts'
import { isTableBlocked } from '../../rules/policy.ts'
import { mayServe } from '../../rules/task.ts'
import { FilterOrder } from './filter-order.ts'
import { Heap, type InHeap } from './heap.ts'
import type { Lane, Table, TableEntry } from './memory-rows.ts'
import type { Order } from './order.ts'

interface Candidate extends InHeap {
  readonly of: TableEntry
  lane: Lane
  tag: bigint
}

/** What was read of the arrivals of a table. What was not read has no tag: it starts at the virtual time. */
interface Read extends InHeap {
  readonly table: Table
  /** The last number, by level. */
  readonly upTo: Map<number, number>
  readonly candidates: Map<TableEntry, Candidate>
  readonly heap: Heap<Candidate>
  /** The first of the table, as of when it was last looked at. */
  first?: Candidate
}

/**
 * Merges the arrivals of its tables, and reads them only until the next lane is found. What has changed since is
 * noticed when it comes to the front. Only what may be served earlier than before is looked for, with the changed
 * tables of the order.
 */
export class TableFilterOrder extends FilterOrder {
  readonly #tables: readonly string[]
  readonly #reads = new Map<string, Read>()
  /** The tables that may be served, by their first candidate. */
  readonly #heap = new Heap<Read>((a, b) => compareCandidates(a.first as Candidate, b.first as Candidate))
  #changesRead = 0

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
    this.#readChangedTables()
    for (let read = this.#heap.first; read !== undefined; read = this.#heap.first) {
      this.#place(read)
      if (this.#heap.first === read) return read.first?.lane
    }
    if (!this.#tables.some((name) => (this.order.tables.get(name)?.waiting.partitions ?? 0) > 0)) this.drain()
    return undefined
  }

  ahead(count: number): Lane[] {
    const lanes: Lane[] = []
    for (const { table, upTo, heap } of this.#heap.items) {
      for (const { lane } of heap.items.slice(0, count - lanes.length)) lanes.push(lane)
      const ofLevel = table.arrivals.from(0)
      let next = ofLevel?.after(upTo.get(ofLevel.level) ?? 0)
      while (next !== undefined && lanes.length < count) {
        if (next.of.lane !== undefined) lanes.push(next.of.lane)
        next = ofLevel?.after(next.number)
      }
      if (lanes.length === count) break
    }
    return lanes
  }

  protected override drain(): void {
    super.drain()
    for (const read of this.#reads.values()) this.#heap.remove(read)
    this.#reads.clear()
  }

  #readChangedTables(): void {
    const { changedTables } = this.order
    const changed = changedTables.since(this.#changesRead, this.#tables.length) ?? this.#tables
    this.#changesRead = changedTables.end
    for (const name of changed) {
      const table = this.order.tables.get(name)
      if (table !== undefined && this.tables?.has(name)) this.#place(this.#readOf(name, table))
    }
  }

  /** A table that was dropped in the meantime is read from its beginning. */
  #readOf(name: string, table: Table): Read {
    const known = this.#reads.get(name)
    if (known?.table === table) return known
    if (known !== undefined) this.#heap.remove(known)
    const heap = new Heap(compareCandidates)
    const read: Read = { table, upTo: new Map(), candidates: new Map(), heap, heapIndex: -1 }
    this.#reads.set(name, read)
    return read
  }

  /** Puts a table where its first candidate belongs. One of which nothing may be served leaves until it changes. */
  #place(read: Read): void {
    const first = isTableBlocked(read.table) ? undefined : this.#firstOf(read)
    if (first === undefined) {
      this.#heap.remove(read)
      return
    }
    read.first = first
    this.#heap.put(read)
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
      else this.#move(read, first, lane)
    }
  }

  #add(read: Read, of: TableEntry): void {
    const { lane } = of
    if (lane === undefined) return
    const known = read.candidates.get(of)
    if (known !== undefined) this.#move(read, known, lane)
    else {
      const candidate = { of, lane, tag: this.startOf(lane), heapIndex: -1 }
      read.candidates.set(of, candidate)
      read.heap.put(candidate)
    }
  }

  /** A lane that waits keeps the tag with which it began to wait, although the virtual time may be past it. */
  #move({ heap }: Read, candidate: Candidate, lane: Lane): void {
    if (lane !== candidate.lane) candidate.tag = this.startOf(lane)
    else candidate.tag = larger(this.tagOf(lane) ?? candidate.tag, candidate.tag)
    candidate.lane = lane
    heap.put(candidate)
  }
}

const compareCandidates = (a: Candidate, b: Candidate): number =>
  a.lane.level - b.lane.level || (a.tag === b.tag ? a.lane.id - b.lane.id : a.tag < b.tag ? -1 : 1)
