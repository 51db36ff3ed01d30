import type {
  Due,
  IndexesOfLane,
  KnownOfLane,
  Loaded,
  LoadedRows,
  Needs,
  Recount,
} from '../../handoff/disk.ts'
import { type KnownPartition, knownOf, type StoredPartition } from '../../handoff/partition.ts'
import { noTallies, totalOf, unfinishedOf } from '../../handoff/rules/task.ts'
import type { StoredKey, StoredLane, StoredTask } from '../../handoff/stored.ts'
import { copyKey, copyLane, copyPartition, copyTask, type MemoryMedium } from './memory-medium.ts'
import { firstAbove } from './partition-table.ts'

/** Collects copies of rows and of their parent rows, each at most once. */
class Collected {
  readonly #tasks: StoredTask[] = []
  readonly #lanes: StoredLane[] = []
  readonly #levels: Loaded['levels'][number][] = []
  readonly #laneTables: Loaded['laneTables'][number][] = []
  readonly #tableTimes: Loaded['tableTimes'][number][] = []
  readonly #partitions: StoredPartition[] = []
  /** The rows that were copied. */
  readonly #seen = new Set<object>()
  readonly #medium: MemoryMedium

  constructor(medium: MemoryMedium) {
    this.#medium = medium
  }

  task(id: number): void {
    const task = this.#medium.tasks.get(id)
    if (this.#isNew(task)) this.#tasks.push(copyTask(task))
  }

  lane(id: number): void {
    const lane = this.#medium.lanes.get(id)
    if (!this.#isNew(lane)) return
    this.#lanes.push(copyLane(lane))
    this.task(lane.task)
    this.level(lane.level)
    for (const row of this.#medium.laneTables.get(id)?.values() ?? []) {
      this.#laneTables.push({ ...row })
      this.tableTime(row.level, row.table)
    }
  }

  tableTime(level: number, table: string): void {
    const time = this.#medium.tableTimes.get(`${level}:${table}`)
    if (this.#isNew(time)) this.#tableTimes.push({ ...time })
  }

  level(at: number): void {
    const level = this.#medium.levels.get(at)
    if (this.#isNew(level)) this.#levels.push({ ...level })
  }

  partition(id: number): void {
    const partition = this.partitionAlone(id)
    if (partition !== undefined) this.lane(partition.lane)
  }

  partitionAlone(id: number): StoredPartition | undefined {
    const partition = this.#medium.partitions.rows.get(id)
    if (!this.#isNew(partition)) return undefined
    const copy = copyPartition(partition)
    this.#partitions.push(copy)
    return copy
  }

  rows(): LoadedRows {
    return {
      tasks: this.#tasks,
      lanes: this.#lanes,
      levels: this.#levels,
      laneTables: this.#laneTables,
      tableTimes: this.#tableTimes,
      partitions: this.#partitions,
    }
  }

  #isNew<Row extends object>(row: Row | undefined): row is Row {
    if (row === undefined || this.#seen.has(row)) return false
    this.#seen.add(row)
    return true
  }
}

export function loadFrom(medium: MemoryMedium, needs: Needs): Loaded {
  const found = new Collected(medium)
  const keys: StoredKey[] = []
  const lanes = (ids: readonly number[]) => {
    for (const id of ids) found.lane(id)
    return ids
  }
  const partitions = (ids: readonly number[]) => {
    for (const id of ids) found.partition(id)
    return ids
  }
  const waiting = (ids: readonly number[]) => {
    for (const id of ids) found.partitionAlone(id)
    return ids
  }
  for (const name of needs.taskNames ?? []) found.task(medium.tasksByName.get(name) ?? 0)
  for (const id of needs.tasks ?? []) found.task(id)
  lanes(needs.lanes ?? [])
  for (const level of needs.levels ?? []) found.level(level)
  for (const { level, table } of needs.tableTimes ?? []) found.tableTime(level, table)
  for (const { task, levels } of needs.lanesOf ?? []) {
    const wanted = new Set(levels)
    for (const lane of medium.lanesOf.get(task) ?? []) if (wanted.has(lane.level)) found.lane(lane.id)
  }
  partitions(needs.partitions ?? [])
  for (const { lane, indexes } of needs.named ?? []) {
    const { byIndex } = medium.partitions.ofLane(lane)
    for (const index of indexes) found.partition(byIndex.get(index) ?? 0)
  }
  for (const key of needs.keys ?? []) {
    const stored = medium.keys.get(key)
    if (stored !== undefined) keys.push(copyKey(stored))
  }
  return {
    ...found.rows(),
    order: needs.order === undefined ? [] : lanes(inOrder(medium, needs.order)),
    nextLanes: (needs.nextLanes ?? []).map((asked) => lanes(nextLanes(medium, asked))),
    rows: (needs.rows ?? []).map((asked) => partitions(rowsByIndex(medium, asked))),
    fresh: (needs.fresh ?? []).map((asked) => waiting(freshOf(medium, asked))),
    returned: (needs.returned ?? []).map((asked) => waiting(returnedOf(medium, asked))),
    keys,
  }
}

type Requested<Part extends keyof Needs> =
  NonNullable<Needs[Part]> extends readonly (infer One)[] ? One : never

function inOrder(medium: MemoryMedium, { after, limit, table }: NonNullable<Needs['order']>): number[] {
  const behind: { level: number; turn: bigint; id: number }[] = []
  const waiting = table === undefined ? medium.waiting : (medium.waitingByTable.get(table) ?? [])
  for (const id of waiting) {
    const lane = table === undefined ? medium.lanes.get(id) : medium.laneTables.get(id)?.get(table)
    if (lane === undefined || lane.turn === null) continue
    const { level, turn } = lane
    if (after === null || isBehind({ level, turn, id }, after)) behind.push({ level, turn, id })
  }
  behind.sort((a, b) => a.level - b.level || (a.turn < b.turn ? -1 : a.turn > b.turn ? 1 : a.id - b.id))
  return behind.slice(0, limit).map(({ id }) => id)
}

function isBehind(
  { level, turn, id }: { level: number; turn: bigint; id: number },
  after: NonNullable<NonNullable<Needs['order']>['after']>,
): boolean {
  if (level !== after.level) return level > after.level
  return turn === after.turn ? id > after.lane : turn > after.turn
}

function nextLanes(medium: MemoryMedium, { task, from, having, limit }: Requested<'nextLanes'>): number[] {
  const has = ({ partitions, purged, turn }: StoredLane) => {
    switch (having) {
      case 'any':
        return true
      case 'parked':
        return partitions.parked > 0
      case 'waiting':
        return turn !== null
      case 'unfinished':
        return unfinishedOf(partitions) > 0
      case 'rows':
        return totalOf(partitions) > purged
    }
  }
  const lanes = (medium.lanesOf.get(task) ?? []).filter((lane) => lane.level >= from && has(lane))
  return lanes.slice(0, limit).map(({ id }) => id)
}

function rowsByIndex(
  medium: MemoryMedium,
  { lane, tail, state, afterIndex, limit }: Requested<'rows'>,
): number[] {
  const { ids } = medium.partitions.ofLane(lane)
  const found: StoredPartition[] = []
  for (const id of ids.slice(0, firstAbove(ids, tail))) {
    const row = medium.partitions.rows.get(id)
    if (row !== undefined && row.index > afterIndex && (state === null || row.state === state))
      found.push(row)
  }
  found.sort((a, b) => a.index - b.index)
  return found.slice(0, limit).map(({ id }) => id)
}

function freshOf(medium: MemoryMedium, { lane, table, after, tail, limit }: Requested<'fresh'>): number[] {
  const { ids } = medium.partitions.ofLane(lane)
  const first = firstAbove(ids, after)
  if (table !== undefined) {
    const rows = ids.slice(first, firstAbove(ids, tail))
    return rows.filter((id) => medium.partitions.rows.get(id)?.computeTable === table).slice(0, limit)
  }
  return ids.slice(first, Math.min(first + limit, firstAbove(ids, tail)))
}

function returnedOf(
  medium: MemoryMedium,
  { lane, table, line, after, limit }: Requested<'returned'>,
): number[] {
  const found: { id: number; dueAt: number }[] = []
  for (const id of medium.partitions.ofLane(lane).returned) {
    const row = medium.partitions.rows.get(id)
    if (row === undefined || row.line !== line) continue
    if (table !== undefined && row.computeTable !== table) continue
    const dueAt = row.dueAt ?? 0
    const isAhead = after !== null && (dueAt < after.dueAt || (dueAt === after.dueAt && id <= after.id))
    if (!isAhead) found.push({ id, dueAt })
  }
  found.sort(byDue)
  return found.slice(0, limit).map(({ id }) => id)
}

const byDue = (a: { id: number; dueAt: number }, b: { id: number; dueAt: number }) =>
  a.dueAt - b.dueAt || a.id - b.id

export function dueFrom(medium: MemoryMedium, now: number, limit: number, leases: boolean): Due {
  const found = new Collected(medium)
  let nextDueAt: number | null = null
  const take = (ids: Iterable<number>) => {
    const due: { id: number; dueAt: number }[] = []
    const isNext = (dueAt: number) => {
      nextDueAt = Math.min(nextDueAt ?? dueAt, dueAt)
    }
    for (const id of ids) {
      const dueAt = medium.partitions.rows.get(id)?.dueAt ?? 0
      if (dueAt <= now) due.push({ id, dueAt })
      else isNext(dueAt)
    }
    due.sort(byDue)
    for (const { dueAt } of due.splice(limit)) isNext(dueAt)
    for (const { id } of due) found.partition(id)
    return due.map(({ id }) => id)
  }
  const leased = leases ? take(medium.partitions.leased) : []
  const delayed = take(medium.partitions.delayed)
  return { ...found.rows(), leased, delayed, nextDueAt }
}

export function knownIn(medium: MemoryMedium, { lane, tail, indexes }: IndexesOfLane): KnownOfLane {
  const { byIndex } = medium.partitions.ofLane(lane)
  const ranges = medium.ranges.get(lane) ?? []
  const known = new Map<number, KnownPartition | null>()
  for (const index of indexes) {
    const row = medium.partitions.rows.get(byIndex.get(index) ?? 0)
    if (row !== undefined && row.id <= tail) known.set(index, knownOf(row))
    else if (ranges.some(({ first, last }) => first <= index && index <= last)) known.set(index, null)
  }
  return known
}

export function dueKeysIn(medium: MemoryMedium, now: number, limit: number): StoredKey[] {
  const due = [...medium.keys.values()].filter(({ forgetAt }) => forgetAt <= now)
  due.sort((a, b) => a.forgetAt - b.forgetAt)
  return due.slice(0, limit).map(copyKey)
}

/** A task whose purge has started goes first: until the purge ends, only part of the task is left. */
export function purgeableIn(medium: MemoryMedium, finishedBefore: number): StoredTask | null {
  let first: StoredTask | null = null
  for (const task of medium.tasks.values()) {
    if (task.finishedAt === null || task.partitions.leased + task.partitions.delayed > 0) continue
    if (task.purgedAt !== null) {
      const lanes = medium.lanesOf.get(task.id) ?? []
      if (lanes.some(({ id }) => medium.partitions.ofLane(id).ids.length > 0)) return copyTask(task)
    } else if (
      task.finishedAt < finishedBefore &&
      task.staging === null &&
      (first?.finishedAt ?? Infinity) > task.finishedAt
    )
      first = task
  }
  return first === null ? null : copyTask(first)
}

export const tasksIn = (medium: MemoryMedium, isWanted: (task: StoredTask) => boolean): StoredTask[] =>
  [...medium.tasks.values()].filter(isWanted).map(copyTask)

export function recountOf(medium: MemoryMedium): Recount[] {
  const counts: Recount[] = []
  for (const lane of medium.lanes.values()) {
    const task = medium.tasks.get(lane.task)
    if (task === undefined) throw new Error(`lane ${lane.id} has no task`)
    const { partitions, records } = noTallies()
    const waiting = { fresh: 0, released: 0, retry: 0 }
    const tables = new Map(
      [...(medium.laneTables.get(lane.id)?.values() ?? [])].map((one) => [
        one.table,
        { row: { ...one }, waiting: { fresh: 0, released: 0, retry: 0 } },
      ]),
    )
    for (const id of medium.partitions.ofLane(lane.id).ids) {
      if (id > lane.tail) break
      const row = medium.partitions.rows.get(id)
      if (row === undefined) continue
      partitions[row.state] += 1
      records[row.state] += row.recordCount
      if (row.state !== 'ready') continue
      waiting[row.line] += 1
      const table = tables.get(row.computeTable)
      if (table !== undefined) table.waiting[row.line] += 1
    }
    counts.push({
      lane: copyLane(lane),
      task: copyTask(task),
      partitions,
      records,
      waiting,
      tables: [...tables.values()],
    })
  }
  return counts
}
