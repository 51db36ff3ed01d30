import type { MemoryMedium } from '../../../packages/server/src/disk/memory/memory-medium.ts'
import type { Images } from '../../../packages/server/src/handoff/disk.ts'
import { addToImages, noImages } from '../../../packages/server/src/handoff/engine/state/images.ts'
import type { PartitionStatus, StoredPartition } from '../../../packages/server/src/handoff/partition.ts'
import type { StoredKey, StoredLane, StoredTask } from '../../../packages/server/src/handoff/stored.ts'
import { decoded } from './decoded.ts'
import type { ModelLane, ModelPartition } from './model-task.ts'

type Done = { readonly partitions: number; readonly records: number }

/** What is durable: the rows, and the entries that are not flushed to rows yet. */
export class Truth {
  readonly #medium: MemoryMedium
  readonly #images: Images = noImages()
  readonly #tasks = new Map<string, StoredTask>()
  #done: Map<string, Done> | null = null

  constructor(medium: MemoryMedium) {
    this.#medium = medium
    for (const body of medium.unflushed()) addToImages(this.#images, decoded(body))
    for (const task of this.#images.tasks.values()) this.#tasks.set(task.taskId, task)
  }

  task(taskId: string): StoredTask | undefined {
    return this.#tasks.get(taskId) ?? this.#medium.tasks.get(this.#medium.tasksByName.get(taskId) ?? 0)
  }

  /** Whether a partition is stored and counts. */
  has(task: number, level: number, index: number): boolean {
    const lane = this.#find(task, level)
    const id = this.#medium.partitions.ofLane(lane?.id ?? 0).byIndex.get(index)
    const tail = (this.#images.lanes.get(lane?.id ?? 0) ?? lane)?.tail
    return id !== undefined && tail !== undefined && id <= tail
  }

  lane(lane: ModelLane): StoredLane | undefined {
    if (lane.id === 0) lane.id = this.#find(this.task(lane.task.taskId)?.id ?? 0, lane.level)?.id ?? 0
    return this.#images.lanes.get(lane.id) ?? this.#medium.lanes.get(lane.id)
  }

  /** What the history counts as done within all minutes, and within all hours, of a level. */
  done(task: number, step: 'minute' | 'hour', level: number): Done {
    if (this.#done === null) {
      this.#done = new Map()
      for (const row of [...this.#medium.throughput.values(), ...this.#images.throughput.values()]) {
        const key = `${row.task}:${row.step}:${row.level}`
        const { partitions = 0, records = 0 } = this.#done.get(key) ?? {}
        this.#done.set(key, { partitions: partitions + row.partitions, records: records + row.records })
      }
    }
    return this.#done.get(`${task}:${step}:${level}`) ?? { partitions: 0, records: 0 }
  }

  /** The row may be older than its image. */
  #find(task: number, level: number): StoredLane | undefined {
    return (
      this.#medium.lanesOf.get(task)?.find((lane) => lane.level === level) ??
      [...this.#images.lanes.values()].find((lane) => lane.task === task && lane.level === level)
    )
  }

  /** Tasks with a call-back that is not closed. */
  *staging(): Generator<string> {
    for (const task of this.#images.tasks.values()) if (task.staging !== null) yield task.taskId
    for (const { id, taskId, staging } of this.#medium.tasks.values())
      if (staging !== null && !this.#images.tasks.has(id)) yield taskId
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
    for (const id of this.#images.partitions.keys()) ids.add(id)
    for (const id of [...ids].sort((a, b) => a - b)) {
      const row = this.#medium.partitions.rows.get(id)
      const status = this.#statusOf(id)
      if (row === undefined || status?.state !== 'leased') continue
      const lane = this.#images.lanes.get(row.lane) ?? this.#medium.lanes.get(row.lane)
      const task = this.#images.tasks.get(lane?.task ?? 0) ?? this.#medium.tasks.get(lane?.task ?? 0)
      if (lane !== undefined && task !== undefined) yield { row: { ...row, ...status }, lane, task }
    }
  }

  key(key: string): StoredKey | undefined {
    const image = this.#images.keys.get(key)
    return image === null ? undefined : (image ?? this.#medium.keys.get(key))
  }

  #statusOf(id: number): PartitionStatus | null | undefined {
    const image = this.#images.partitions.get(id)
    return image === undefined ? this.#medium.partitions.rows.get(id) : image
  }
}
