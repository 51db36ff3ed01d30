import { isAtLimit, weightOfTask } from '../rules/policy.ts'
import { isLaneOpen, mayServe } from '../rules/task.ts'
import type { BatchedPull } from '../store.ts'
import {
  firstOf,
  LINES_AT_A_TIME,
  ORDER_LANES_AT_FIRST,
  ORDER_LANES_AT_MOST,
  TASK_LANES_AT_A_TIME,
} from './load-lanes.ts'
import type { LaneHeap } from './state/lane-heap.ts'
import type { Lane, LaneTable, Partition, Task } from './state/memory-rows.ts'
import { type Source, waitingOf } from './state/memory-rows.ts'
import type { Rotation } from './state/table-orders.ts'
import { load, type Transaction } from './transaction.ts'

/** The filter of a pull that names tables or tasks. */
type Filter = Pick<BatchedPull, 'tables' | 'tasks'>

/** The next partition for a filter, and the table order that is charged for it. */
interface Chosen {
  readonly partition: Partition
  readonly from: LaneTable | null
}

/** A table, task, or table of a task that alternates with others. */
interface Member {
  readonly name: string
  readonly source: Source
  /** Null: only the rotation is charged. */
  readonly order: LaneHeap<LaneTable> | null
}

/**
 * Chooses partitions for a pull that names tables or tasks. Each table has its own order, with its own
 * virtual time and tags. If the pull names several tables or tasks, the ones with work on the lowest level
 * alternate by records.
 */
export class Choice {
  readonly #tx: Transaction
  readonly #filter: Filter
  readonly #rotation: Rotation | null
  /** By task: its lowest lane, or undefined if it has none. */
  readonly #lowest = new Map<Task, Lane | undefined>()

  constructor(tx: Transaction, filter: Filter) {
    this.#tx = tx
    this.#filter = filter
    const { tables, tasks } = filter
    const isSingle = tasks === null ? tables?.length === 1 : tasks.length * (tables?.length ?? 1) === 1
    this.#rotation = isSingle ? null : tx.memory.rotations.of(JSON.stringify([tables, tasks]))
  }

  async next(demand: number): Promise<Chosen | undefined> {
    const { tables, tasks } = this.#filter
    const members = tasks === null ? await this.#ofTables(tables ?? []) : await this.#ofTasks(tasks, tables)
    const level = Math.min(...members.map(({ source }) => source.level))
    const onLevel = members.filter(({ source }) => source.level === level)
    const member = this.#rotation === null ? onLevel[0] : this.#rotation.next(onLevel)
    if (member === undefined) return undefined
    const { name, source, order } = member
    const ahead = () => order?.ahead(LINES_AT_A_TIME) ?? []
    const partition = await firstOf(this.#tx, source, ahead, demand)
    this.#rotation?.charge(name, partition.recordCount, weightOfTask(partition.parentLane.parentTask))
    return { partition, from: order === null ? null : (source as LaneTable) }
  }

  async #ofTables(tables: readonly string[]): Promise<Member[]> {
    const members: Member[] = []
    for (const name of tables) {
      const order = this.#tx.memory.tableOrders.of(name)
      const source = await frontOf(this.#tx, order, name)
      if (source !== undefined) members.push({ name, source, order })
    }
    return members
  }

  async #ofTasks(names: readonly string[], tables: readonly string[] | null): Promise<Member[]> {
    const { tasksByName } = this.#tx.memory
    const missing = names.filter((name) => !tasksByName.has(name))
    if (missing.length > 0) await load(this.#tx, { taskNames: missing })
    const members: Member[] = []
    for (const name of names) {
      const task = tasksByName.get(name)
      const lane = task === undefined ? undefined : await this.#lowestOf(task, tables)
      if (lane === undefined) continue
      if (tables === null) members.push({ name, source: lane, order: null })
      else
        for (const source of tablesWaiting(lane, tables))
          members.push({ name: `${name}\n${source.table}`, source, order: null })
    }
    return members
  }

  /** A pull only takes partitions away, so a lane stays the lowest of its task until it has none left. */
  async #lowestOf(task: Task, tables: readonly string[] | null): Promise<Lane | undefined> {
    const known = this.#lowest.get(task)
    if (known === undefined ? this.#lowest.has(task) : hasWork(known, tables)) return known
    const lane = await lowestLane(this.#tx, task, tables)
    this.#lowest.set(task, lane)
    return lane
  }
}

/** Returns the lane whose turn it is among the lanes that have partitions for a table. */
async function frontOf(
  tx: Transaction,
  order: LaneHeap<LaneTable>,
  name: string,
): Promise<LaneTable | undefined> {
  let limit = ORDER_LANES_AT_FIRST
  while (true) {
    const front = order.front()
    if (front !== null) return front
    const { order: found, laneTables: rows } = await load(tx, {
      order: { after: order.loadedTo, limit, table: name },
    })
    for (const id of found) {
      const table = tx.memory.lanes.get(id)?.tables.get(name)
      if (table === undefined || table.turn === null || table.heapIndex >= 0) continue
      order.put(table)
      if (isLaneOpen(table.parentTask, table.level)) tx.lines.catchUpTable(table)
    }
    const last = rows.find(({ lane, table }) => lane === found.at(-1) && table === name)
    if (last !== undefined && last.turn !== null)
      order.loadedTo = { level: last.level, turn: last.turn, lane: last.lane }
    order.isComplete = found.length < limit
    limit = Math.min(limit * 2, ORDER_LANES_AT_MOST)
  }
}

/** Returns the lane of the lowest level on which a task has a partition for the pull. */
async function lowestLane(
  tx: Transaction,
  task: Task,
  tables: readonly string[] | null,
): Promise<Lane | undefined> {
  if (task.paused || task.cancelled || isAtLimit(task)) return undefined
  while (true) {
    let lowest: Lane | undefined
    for (const lane of task.lanes.values()) {
      if (lowest !== undefined && lowest.level < lane.level) continue
      if (hasWork(lane, tables)) lowest = lane
    }
    if (task.waitingLoadedTo > (lowest?.level ?? Number.MAX_SAFE_INTEGER)) return lowest
    const from = task.waitingLoadedTo
    const { nextLanes } = await load(tx, {
      nextLanes: [{ task: task.id, from, having: 'waiting', limit: TASK_LANES_AT_A_TIME }],
    })
    const found = nextLanes[0] ?? []
    const last = tx.memory.lanes.get(found.at(-1) ?? -1)
    task.waitingLoadedTo =
      found.length < TASK_LANES_AT_A_TIME || last === undefined ? Number.POSITIVE_INFINITY : last.level + 1
  }
}

/** Whether a lane has a partition for the pull that may be handed out now. */
function hasWork(lane: Lane, tables: readonly string[] | null): boolean {
  if (lane.turn === null || !mayServe(lane.parentTask, lane.level)) return false
  return tables === null || tablesWaiting(lane, tables).length > 0
}

const tablesWaiting = ({ tables }: Lane, names: readonly string[]): LaneTable[] =>
  names.flatMap((name) => {
    const table = tables.get(name)
    return table !== undefined && waitingOf(table) > 0 ? [table] : []
  })
