import { mayServe } from '../../rules/task.ts'
import { Heap, type InHeap } from './heap.ts'
import type { Lane, Task } from './memory-rows.ts'

/**
 * The lanes of a task that have the same compute table and in which partitions wait, by level. Only the lowest
 * can be served next. Lanes with several tables are together, under null.
 */
export class TaskTable implements InHeap {
  readonly task: Task
  readonly queue: TableQueue
  readonly lanes = new Heap<Lane>((a, b) => a.level - b.level)
  heapIndex = -1

  constructor(task: Task, queue: TableQueue) {
    this.task = task
    this.queue = queue
  }

  get lane(): Lane | undefined {
    return this.lanes.first
  }
}

/** The order of those that have a table: by level, then by tag; the older lane if tags are equal. */
export class TableQueue implements InHeap {
  readonly table: string | null
  readonly heap = new Heap<TaskTable>((a, b) => compareLanes(a.lane as Lane, b.lane as Lane))
  /** Those with the table, whether they are in the heap or not. */
  readonly members = new Set<TaskTable>()
  /** For choices: what moved forward since `logStart`. Written while a choice reads it. */
  readonly log: TaskTable[] = []
  logStart = 0
  readers = 0
  /** Some choice has read the log up to here. */
  readTo = 0
  heapIndex = -1

  constructor(table: string | null) {
    this.table = table
  }

  get logEnd(): number {
    return this.logStart + this.log.length
  }

  note(moved: TaskTable): void {
    if (this.readers === 0) return
    if (this.log.at(-1) === moved && this.readTo < this.logEnd) return
    this.log.push(moved)
    if (this.log.length <= MOST_LOGGED) return
    this.logStart += this.log.length >> 1
    this.log.splice(0, this.log.length >> 1)
  }
}

/** A choice that has missed more than about this many movements is built again. */
const MOST_LOGGED = 1000

/**
 * Determines which lane is next. A task stands in it once per table, with its lowest lane, below its table.
 * One that may not be served leaves when it comes to the front, and returns when its task or level opens.
 */
export class Order {
  readonly #queues = new Map<string | null, TableQueue>()
  readonly #heap = new Heap<TableQueue>((a, b) =>
    compareLanes(a.heap.first?.lane as Lane, b.heap.first?.lane as Lane),
  )
  /** The number of movements in the heaps, as a measure of work. */
  moves = 0

  /** The next lane, or undefined if nothing may be handed out. */
  front(): Lane | undefined {
    while (true) {
      const first = this.#heap.first?.heap.first
      const lane = first?.lane
      if (first === undefined || lane === undefined) return undefined
      if (mayServe(first.task, lane.level)) return lane
      this.#take(first)
    }
  }

  /** The likely sources of the next partitions. */
  ahead(count: number): Lane[] {
    const lanes: Lane[] = []
    for (const { heap } of this.#heap.items) {
      for (const { lane } of heap.items) {
        if (lanes.length === count) return lanes
        if (lane !== undefined) lanes.push(lane)
      }
    }
    return lanes
  }

  /** For a choice, which reads the log from now on. */
  follow(table: string | null): TableQueue {
    const queue = this.#queue(table)
    queue.readers += 1
    return queue
  }

  unfollow(queue: TableQueue): void {
    queue.readers -= 1
    this.#dropIfEmpty(queue)
  }

  /** Call it after the tag of a lane changed, or after partitions came to it or left it. */
  update(lane: Lane): void {
    const isWaiting = lane.partitions.ready > 0 && !lane.parentTask.cancelled
    const table = lane.severalAfter === null ? lane.table : null
    const before = lane.standsIn
    if (before !== null && (!isWaiting || before.queue.table !== table)) this.#leave(lane, before)
    if (!isWaiting) return
    if (lane.standsIn !== null) this.#move(lane.standsIn)
    else this.#join(lane, table)
  }

  /** A table of a lane with several has work again. */
  noteTable({ standsIn }: Lane): void {
    standsIn?.queue.note(standsIn)
  }

  /** The task may be served again, or one of its levels has opened. */
  reopen(task: Task): void {
    for (const one of task.tables.values()) {
      this.#move(one)
      one.queue.note(one)
    }
  }

  #join(lane: Lane, table: string | null): void {
    const { parentTask: task, time } = lane
    let one = task.tables.get(table)
    if (one === undefined) {
      const queue = this.#queue(table)
      one = new TaskTable(task, queue)
      task.tables.set(table, one)
      queue.members.add(one)
    }
    time.waitingLanes += 1
    lane.standsIn = one
    one.lanes.put(lane)
    this.#move(one)
    one.queue.note(one)
  }

  #leave(lane: Lane, one: TaskTable): void {
    lane.time.waitingLanes -= 1
    lane.standsIn = null
    one.lanes.remove(lane)
    if (one.lanes.size > 0) {
      this.#move(one)
      return
    }
    this.#take(one)
    one.task.tables.delete(one.queue.table)
    one.queue.members.delete(one)
    this.#dropIfEmpty(one.queue)
  }

  #move(one: TaskTable): void {
    this.moves += 1
    const { queue } = one
    queue.heap.put(one)
    this.#heap.put(queue)
  }

  /** Removes it from the heap, not from its table. */
  #take(one: TaskTable): void {
    this.moves += 1
    const { queue } = one
    queue.heap.remove(one)
    if (queue.heap.size === 0) this.#heap.remove(queue)
    else this.#heap.put(queue)
  }

  #queue(table: string | null): TableQueue {
    let queue = this.#queues.get(table)
    if (queue === undefined) {
      queue = new TableQueue(table)
      this.#queues.set(table, queue)
    }
    return queue
  }

  #dropIfEmpty(queue: TableQueue): void {
    if (queue.members.size === 0 && queue.readers === 0) this.#queues.delete(queue.table)
  }
}

export function compareLanes(a: Lane, b: Lane): number {
  if (a.level !== b.level) return a.level - b.level
  if (a.tag !== b.tag) return a.tag < b.tag ? -1 : 1
  return a.id - b.id
}
