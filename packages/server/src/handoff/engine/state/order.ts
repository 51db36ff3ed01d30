import { mayServe } from '../../rules/task.ts'
import { Heap } from './heap.ts'
import { compareLanes, type Lane, TableQueue, type Task, TaskTable } from './memory-rows.ts'

/**
 * Determines which lane is next. A task stands in it once per table, with its lowest lane, below its table.
 * One that may not be served leaves when it comes to the front, and returns when its task or level opens.
 */
export class Order {
  readonly #queues = new Map<string | null, TableQueue>()
  readonly #heap = new Heap<TableQueue>((a, b) =>
    compareLanes(a.heap.first?.lane as Lane, b.heap.first?.lane as Lane),
  )

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
    const { queue } = one
    queue.heap.put(one)
    this.#heap.put(queue)
  }

  /** Removes it from the heap, not from its table. */
  #take(one: TaskTable): void {
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
