import type { MemoryMedium } from '../../../packages/server/src/disk/memory/memory-medium.ts'
import { decodeEntry, type Entry } from '../../../packages/server/src/handoff/engine/entry.ts'
import type { DoneWithin } from '../../../packages/server/src/handoff/engine/throughput.ts'
import type { PartitionStatus, StoredPartition } from '../../../packages/server/src/handoff/partition.ts'
import type { StoredKey, StoredLane, StoredTask } from '../../../packages/server/src/handoff/stored.ts'
import type { ModelLane, ModelPartition } from './model-task.ts'

type Step = 'minute' | 'hour'
type Done = Readonly<Record<Step, { partitions: number; records: number }>>

/** What is durable: the rows, and the entries that are not flushed to rows yet. */
export class Truth {
  readonly #medium: MemoryMedium
  /** The bodies of the entries. */
  #bodies: readonly string[] = []
  /** An entry is needed many times before it is flushed, and is decoded once. */
  #entries = new Map<string, Entry>()
  readonly #tasks = new Map<number, StoredTask>()
  readonly #tasksByName = new Map<string, StoredTask>()
  readonly #lanes = new Map<number, StoredLane>()
  readonly #partitions = new Map<number, PartitionStatus | null>()
  readonly #keys = new Map<string, StoredKey | null>()
  /** What these entries add to the history. */
  #added: DoneWithin[] = []
  #done: Map<number, Done> | null = null

  constructor(medium: MemoryMedium) {
    this.#medium = medium
  }

  /** To be called before it is used: the medium has changed since the last time. */
  refresh(): this {
    this.#done = null
    const bodies = this.#medium.unflushed()
    const known = this.#bodies
    this.#bodies = bodies
    // Mostly entries were added, or nothing happened.
    if (known.every((body, at) => body === bodies[at])) {
      for (let at = known.length; at < bodies.length; at += 1) this.#add(bodies[at] as string)
      return this
    }
    for (const images of [this.#tasks, this.#tasksByName, this.#lanes, this.#partitions, this.#keys])
      images.clear()
    this.#added = []
    const entries = this.#entries
    this.#entries = new Map()
    for (const body of bodies) this.#add(body, entries.get(body))
    return this
  }

  #add(body: string, entry: Entry = decodeEntry(body)): void {
    this.#entries.set(body, entry)
    for (const task of entry.tasks) {
      this.#tasks.set(task.id, task)
      this.#tasksByName.set(task.taskId, task)
    }
    for (const lane of entry.lanes) this.#lanes.set(lane.id, lane)
    for (const [id, status] of entry.partitions) this.#partitions.set(id, status)
    for (const [key, row] of entry.keys) this.#keys.set(key, row)
    for (const done of entry.throughput) this.#added.push(done)
  }

  task(taskId: string): StoredTask | undefined {
    return this.#tasksByName.get(taskId) ?? this.#medium.tasks.get(this.#medium.tasksByName.get(taskId) ?? 0)
  }

  /** Whether a partition is stored and counts. */
  has(task: number, level: number, index: number): boolean {
    const lane = this.#find(task, level)
    const id = this.#medium.partitions.ofLane(lane?.id ?? 0).byIndex.get(index)
    const tail = (this.#lanes.get(lane?.id ?? 0) ?? lane)?.tail
    return id !== undefined && tail !== undefined && id <= tail
  }

  lane(lane: ModelLane): StoredLane | undefined {
    if (lane.id === 0) lane.id = this.#find(this.task(lane.task.taskId)?.id ?? 0, lane.level)?.id ?? 0
    return this.laneWithId(lane.id)
  }

  laneWithId(id: number): StoredLane | undefined {
    return this.#lanes.get(id) ?? this.#medium.lanes.get(id)
  }

  /** What the history counts as done within all minutes, and within all hours, of a level. */
  done(task: number, level: number): Done {
    if (this.#done === null) {
      this.#done = new Map()
      for (const row of this.#medium.throughput.values())
        addTo(doneOf(this.#done, row.task, row.level)[row.step], row)
      for (const row of this.#added) {
        const { minute, hour } = doneOf(this.#done, row.task, row.level)
        addTo(minute, row)
        addTo(hour, row)
      }
    }
    return doneOf(this.#done, task, level)
  }

  /** The row may be older than its image. */
  #find(task: number, level: number): StoredLane | undefined {
    for (const lane of this.#medium.lanesOf.get(task) ?? []) if (lane.level === level) return lane
    for (const lane of this.#lanes.values()) if (lane.task === task && lane.level === level) return lane
    return undefined
  }

  /** Tasks with a call-back that is not closed. */
  *staging(): Generator<string> {
    for (const task of this.#tasks.values()) if (task.staging !== null) yield task.taskId
    for (const { id, taskId, staging } of this.#medium.tasks.values())
      if (staging !== null && !this.#tasks.has(id)) yield taskId
  }

  /** The row of a partition, if there is one that counts. */
  partition(
    partition: ModelPartition,
  ): { readonly id: number; readonly status: PartitionStatus } | undefined {
    const lane = this.lane(partition.lane)
    if (lane === undefined) return undefined
    const id = this.#medium.partitions.ofLane(lane.id).byIndex.get(partition.descriptor.index)
    if (id === undefined || id > lane.tail) return undefined
    const status = this.#statusOf(id)
    return status === null || status === undefined ? undefined : { id, status }
  }

  /** All leased partitions, with their lane and task. */
  *leased(): Generator<{
    readonly row: StoredPartition
    readonly lane: StoredLane
    readonly task: StoredTask
  }> {
    const ids = new Set(this.#medium.partitions.leased)
    for (const id of this.#partitions.keys()) ids.add(id)
    for (const id of [...ids].sort((a, b) => a - b)) {
      const row = this.#medium.partitions.rows.get(id)
      const status = this.#statusOf(id)
      if (row === undefined || status?.state !== 'leased') continue
      const lane = this.#lanes.get(row.lane) ?? this.#medium.lanes.get(row.lane)
      const task = this.#tasks.get(lane?.task ?? 0) ?? this.#medium.tasks.get(lane?.task ?? 0)
      if (lane !== undefined && task !== undefined) yield { row: { ...row, ...status }, lane, task }
    }
  }

  key(key: string): StoredKey | undefined {
    const image = this.#keys.get(key)
    return image === null ? undefined : (image ?? this.#medium.keys.get(key))
  }

  #statusOf(id: number): PartitionStatus | null | undefined {
    const image = this.#partitions.get(id)
    return image === undefined ? this.#medium.partitions.rows.get(id) : image
  }
}

/** More levels than any task has here. */
const LEVELS = 1000

function doneOf(all: Map<number, Done>, task: number, level: number): Done {
  const key = task * LEVELS + level
  let done = all.get(key)
  if (done === undefined) {
    done = { minute: { partitions: 0, records: 0 }, hour: { partitions: 0, records: 0 } }
    all.set(key, done)
  }
  return done
}

function addTo(done: Done[Step], { partitions, records }: Done[Step]): void {
  done.partitions += partitions
  done.records += records
}
