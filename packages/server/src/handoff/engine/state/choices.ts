import { cost } from '../../rules/fair-order.ts'
import { isTableBlocked, weightOfTask } from '../../rules/policy.ts'
import { mayServe } from '../../rules/task.ts'
import { Heap, type InHeap } from './heap.ts'
import type { Lane, Table, Task, TaskTable } from './memory-rows.ts'
import type { Order } from './order.ts'

/** The names that a pull may be limited to. Null: any. */
export interface Names {
  readonly tables: readonly string[] | null
  readonly tasks: readonly string[] | null
}

/** The maximum number of tags and candidates of all choices. The choices used longest ago are dropped. */
const MOST_TAGS = 1_000_000

interface Candidate extends InHeap {
  readonly of: TaskTable
  lane: Lane
  tag: bigint
}

/** The virtual time of one level, and the tags of the lanes that were served on it. */
interface Shares {
  virtual: bigint
  readonly tags: Map<number, bigint>
  /** Tags that are not above the virtual time are dropped when there are this many. */
  mostTags: number
}

const FEWEST_TAGS = 64

/**
 * The order of the pulls that name the same tables or tasks: start-time fair queuing as for all lanes, with a
 * virtual time and tags of its own. In memory only: it starts afresh with the leader.
 */
export abstract class Choice {
  readonly tables: ReadonlySet<string> | null
  protected readonly order: Order
  readonly #levels = new Map<number, Shares>()

  constructor(order: Order, tables: readonly string[] | null) {
    this.order = order
    this.tables = tables === null ? null : new Set(tables)
  }

  /** The next lane, or undefined if nothing may be handed out. */
  abstract next(): Lane | undefined
  /** The likely sources of the next partitions. */
  abstract ahead(count: number): Lane[]
  abstract forget(): void

  get size(): number {
    let size = 0
    for (const { tags } of this.#levels.values()) size += tags.size
    return size
  }

  /** Charges a partition of a lane that is handed out. */
  charge(lane: Lane, recordCount: number): void {
    const shares = this.#sharesOf(lane.level)
    const tag = this.startOf(lane)
    if (tag > shares.virtual) shares.virtual = tag
    shares.tags.set(lane.id, shares.virtual + cost(recordCount, weightOfTask(lane.parentTask)))
    if (shares.tags.size <= shares.mostTags) return
    for (const [id, one] of shares.tags) if (one <= shares.virtual) shares.tags.delete(id)
    shares.mostTags = Math.max(FEWEST_TAGS, 2 * shares.tags.size)
  }

  /** Undefined if the lane was not served lately. */
  protected tagOf({ level, id }: Lane): bigint | undefined {
    return this.#levels.get(level)?.tags.get(id)
  }

  protected startOf(lane: Lane): bigint {
    return this.tagOf(lane) ?? this.#sharesOf(lane.level).virtual
  }

  /** Nothing waits: unequal shares are forgotten. */
  protected drain(): void {
    this.#levels.clear()
  }

  /** The lowest lane with one of the named tables that may be served. */
  protected laneOf({ lane, table }: TaskTable): Lane | undefined {
    if (lane === undefined) return undefined
    if (table.name !== null) return isTableBlocked(table) ? undefined : lane
    if (this.tables !== null) return hasSome(lane, this.tables) ? lane : undefined
    this.order.recallTables(lane)
    return this.order.servableTable(lane) === undefined ? undefined : lane
  }

  #sharesOf(level: number): Shares {
    let shares = this.#levels.get(level)
    if (shares === undefined) {
      shares = { virtual: 0n, tags: new Map(), mostTags: FEWEST_TAGS }
      this.#levels.set(level, shares)
    }
    return shares
  }
}

const hasSome = (lane: Lane, tables: ReadonlySet<string>): boolean => {
  for (const name of tables) {
    const table = lane.tables.get(name)
    if (table !== undefined && table.ready > 0 && !isTableBlocked(table.place.table)) return true
  }
  return false
}

/**
 * A choice of tables has a heap of those that have one of them. What moves forward is read from the logs of
 * the tables; what moves back is noticed when it comes to the front.
 */
class TableChoice extends Choice {
  readonly #followed: { readonly table: Table; readTo: number }[]
  readonly #heap = new Heap<Candidate>(
    (a, b) =>
      a.lane.level - b.lane.level || (a.tag === b.tag ? a.lane.id - b.lane.id : a.tag < b.tag ? -1 : 1),
  )
  readonly #candidates = new Map<TaskTable, Candidate>()

  constructor(order: Order, tables: readonly string[]) {
    super(order, tables)
    this.#followed = [...tables, null].map((name) => ({ table: order.follow(name), readTo: -1 }))
  }

  override get size(): number {
    return super.size + this.#candidates.size
  }

  next(): Lane | undefined {
    for (const followed of this.#followed) this.#readLog(followed)
    while (true) {
      const first = this.#heap.first
      if (first === undefined) {
        this.drain()
        return undefined
      }
      const lane = this.laneOf(first.of)
      if (lane === undefined || !mayServe(lane.parentTask, lane.level)) {
        this.#heap.remove(first)
        this.#candidates.delete(first.of)
      } else if (lane === first.lane && (this.tagOf(lane) ?? first.tag) <= first.tag) return lane
      else this.#place(first, lane)
    }
  }

  ahead(count: number): Lane[] {
    return this.#heap.items.slice(0, count).map(({ lane }) => lane)
  }

  forget(): void {
    for (const { table } of this.#followed) this.order.unfollow(table)
  }

  #readLog(followed: { readonly table: Table; readTo: number }): void {
    const { table, readTo } = followed
    const { logEnd } = table
    if (readTo === logEnd) return
    if (readTo < table.logStart) for (const one of table.members) this.#add(one)
    else
      for (let at = readTo - table.logStart; at < table.log.length; at += 1)
        this.#add(table.log[at] as TaskTable)
    followed.readTo = logEnd
    table.readTo = Math.max(table.readTo, logEnd)
  }

  #add(one: TaskTable): void {
    const lane = this.laneOf(one)
    if (lane === undefined) return
    const known = this.#candidates.get(one)
    if (known !== undefined) this.#place(known, lane)
    else {
      const candidate = { of: one, lane, tag: this.startOf(lane), heapIndex: -1 }
      this.#candidates.set(one, candidate)
      this.#heap.put(candidate)
    }
  }

  /** A lane that waits keeps the tag with which it began to wait, although the virtual time may be past it. */
  #place(candidate: Candidate, lane: Lane): void {
    if (lane !== candidate.lane) candidate.tag = this.startOf(lane)
    else candidate.tag = larger(this.tagOf(lane) ?? candidate.tag, candidate.tag)
    candidate.lane = lane
    this.#heap.put(candidate)
  }
}

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b)

/** A choice of tasks looks at what they have: a pull names few. */
class TaskChoice extends Choice {
  readonly #tasks: readonly string[]
  readonly #tasksByName: ReadonlyMap<string, Task>

  constructor(
    order: Order,
    tasksByName: ReadonlyMap<string, Task>,
    tasks: readonly string[],
    tables: readonly string[] | null,
  ) {
    super(order, tables)
    this.#tasks = tasks
    this.#tasksByName = tasksByName
  }

  next(): Lane | undefined {
    let first: Lane | undefined
    for (const name of this.#tasks) {
      const task = this.#tasksByName.get(name)
      if (task === undefined) continue
      for (const one of task.tables.values()) {
        const { name: table } = one.table
        if (this.tables !== null && table !== null && !this.tables.has(table)) continue
        const lane = this.laneOf(one)
        if (lane === undefined || !mayServe(task, lane.level)) continue
        if (first === undefined || this.#isBefore(lane, first)) first = lane
      }
    }
    if (first === undefined) this.drain()
    return first
  }

  ahead(): Lane[] {
    return []
  }

  forget(): void {}

  #isBefore(a: Lane, b: Lane): boolean {
    if (a.level !== b.level) return a.level < b.level
    const [tagA, tagB] = [this.startOf(a), this.startOf(b)]
    return tagA === tagB ? a.id < b.id : tagA < tagB
  }
}

/** The choices used lately, by their names. */
export class Choices {
  readonly #order: Order
  readonly #tasksByName: ReadonlyMap<string, Task>
  /** The most recently used is last. */
  readonly #choices = new Map<string, Choice>()
  /** The sizes as of their last use. */
  readonly #sizes = new Map<Choice, number>()
  #total = 0

  constructor(order: Order, tasksByName: ReadonlyMap<string, Task>) {
    this.#order = order
    this.#tasksByName = tasksByName
  }

  of({ tables, tasks }: Names): Choice {
    const sorted = { tables: sortedNames(tables), tasks: sortedNames(tasks) }
    const name = JSON.stringify([sorted.tables, sorted.tasks])
    let choice = this.#choices.get(name)
    if (choice === undefined)
      choice =
        sorted.tasks === null
          ? new TableChoice(this.#order, sorted.tables ?? [])
          : new TaskChoice(this.#order, this.#tasksByName, sorted.tasks, sorted.tables)
    else this.#choices.delete(name)
    this.#choices.set(name, choice)
    return choice
  }

  /** Call it after a choice was used. */
  used(choice: Choice): void {
    const { size } = choice
    this.#total += size - (this.#sizes.get(choice) ?? 0)
    this.#sizes.set(choice, size)
    for (const [name, oldest] of this.#choices) {
      if ((this.#total <= MOST_TAGS && this.#choices.size <= MOST_CHOICES) || oldest === choice) return
      this.#remove(name, oldest)
    }
  }

  /** It starts afresh when it is used again. */
  drop(choice: Choice): void {
    for (const [name, one] of this.#choices) if (one === choice) this.#remove(name, one)
  }

  #remove(name: string, choice: Choice): void {
    this.#choices.delete(name)
    this.#total -= this.#sizes.get(choice) ?? 0
    this.#sizes.delete(choice)
    choice.forget()
  }
}

/** Each follows the logs of its tables. */
const MOST_CHOICES = 10_000

const sortedNames = (names: readonly string[] | null): string[] | null =>
  names === null ? null : [...new Set(names)].toSorted()
