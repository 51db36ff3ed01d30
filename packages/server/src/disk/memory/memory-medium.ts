import { MAX_COUNTED_DELIVERIES } from '@baton/protocol'
import { type Appended, type Images, KnownKeys } from '../../handoff/disk.ts'
import {
  type DeliveryBacklog,
  type DeliveryQuery,
  deliveryKey,
  type OutboxImages,
  progressOf,
  type StoredDelivery,
  type StoredSubscription,
} from '../../handoff/outbox.ts'
import type { PartitionDescriptor, StoredPartition } from '../../handoff/partition.ts'
import type { IndexRun } from '../../handoff/rules/index-runs.ts'
import { StoreUnavailable } from '../../handoff/store.ts'
import type {
  NextIds,
  StagedIds,
  StoredKey,
  StoredLane,
  StoredLaneTable,
  StoredLevel,
  StoredPace,
  StoredTableTime,
  StoredTask,
  StoredThroughput,
} from '../../handoff/stored.ts'
import { PACE_SECONDS_KEPT } from '../../handoff/views/eta.ts'
import { addTotals, type InstanceDetails, noTotals, type TotalsAdded } from '../../handoff/views/queries.ts'
import { PartitionTable } from './partition-table.ts'

/**
 * The outbox of an in-memory medium. Its rows are replaced, never changed in place, so they need no copies.
 */
export class MemoryOutbox {
  readonly #subscriptions = new Map<string, StoredSubscription>()
  readonly #deliveries = new Map<string, StoredDelivery>()

  write({ subscriptions, deliveries, changes }: OutboxImages): void {
    for (const [id, row] of subscriptions)
      if (row === null) this.#subscriptions.delete(id)
      else this.#subscriptions.set(id, row)
    for (const delivery of deliveries) {
      const key = deliveryKey(delivery)
      if (!this.#deliveries.has(key)) this.#deliveries.set(key, delivery)
    }
    for (const [key, { progress }] of changes) {
      const delivery = this.#deliveries.get(key)
      if (delivery === undefined) continue
      if (progress === null) this.#deliveries.delete(key)
      else this.#deliveries.set(key, { ...delivery, progress })
    }
  }

  subscriptions(): StoredSubscription[] {
    return [...this.#subscriptions.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  deliveries({ subscription, pending, ofTask, after, newestFirst, limit }: DeliveryQuery): StoredDelivery[] {
    const found = this.#inOrder().filter(
      (one) =>
        one.subscription === subscription &&
        (!pending || isPending(one)) &&
        (ofTask === null || (one.taskId === ofTask.taskId && one.event <= ofTask.upTo)) &&
        (newestFirst ? one.event < after : one.event > after),
    )
    return (newestFirst ? found.reverse() : found).slice(0, limit)
  }

  backlogs(subscriptions: readonly string[]): DeliveryBacklog[] {
    return subscriptions.map((subscription) => {
      const pending = this.#inOrder().filter((one) => one.subscription === subscription && isPending(one))
      return { pending: Math.min(pending.length, MAX_COUNTED_DELIVERIES), oldestAt: pending[0]?.at ?? null }
    })
  }

  #inOrder(): StoredDelivery[] {
    return [...this.#deliveries.values()].sort((a, b) => a.event - b.event)
  }
}

const isPending = (delivery: StoredDelivery): boolean => progressOf(delivery).state === 'pending'

// Everything that enters or leaves a medium is copied, so that neither side sees changes that the other did
// not write. The copies are written by hand because structuredClone is much slower.

export const copyTask = (task: StoredTask): StoredTask => ({
  ...task,
  partitions: { ...task.partitions },
  records: { ...task.records },
  owners: [...task.owners],
  reruns: task.reruns.map((rerun) => ({ ...rerun })),
  staging: task.staging === null ? null : { ...task.staging },
  durations: [...task.durations],
})

export const copyLane = (lane: StoredLane): StoredLane => ({
  ...lane,
  partitions: { ...lane.partitions },
  records: { ...lane.records },
})

export const copyPartition = (partition: StoredPartition): StoredPartition => ({ ...partition })

export const copyKey = (key: StoredKey): StoredKey => ({ ...key, leases: [...key.leases] })

interface Entry {
  readonly term: number
  /** Null for the entry of a take-over, which changes nothing. */
  readonly body: string | null
}

export type InstanceRow = Omit<InstanceDetails, 'leases' | 'leasesEndAt' | 'now' | 'tasks'>

/**
 * What survives a crash: entries and rows. Several nodes may open disks on one medium, as on one database.
 * The node that opened it last is the writer; writes of the others are refused.
 */
export class MemoryMedium {
  #term = 0
  #folded = 0
  #last = 0
  readonly #entries = new Map<number, Entry>()
  readonly tasks = new Map<number, StoredTask>()
  readonly tasksByName = new Map<string, number>()
  readonly lanes = new Map<number, StoredLane>()
  /** By task, in ascending order of level. */
  readonly lanesOf = new Map<number, StoredLane[]>()
  /** Lanes with a turn. */
  readonly waiting = new Set<number>()
  readonly levels = new Map<number, StoredLevel>()
  /** By lane, then by name. */
  readonly laneTables = new Map<number, Map<string, StoredLaneTable>>()
  /** Lanes with a turn for a table, by its name. */
  readonly waitingByTable = new Map<string, Set<number>>()
  /** By `<level>:<table>`. */
  readonly tableTimes = new Map<string, StoredTableTime>()
  readonly partitions = new PartitionTable()
  readonly keys = new Map<string, StoredKey>()
  /** By task and second. */
  readonly pace = new Map<number, Map<number, StoredPace>>()
  /** By task, step, time and level. */
  readonly throughput = new Map<string, StoredThroughput>()
  /** By lane. Ascending, with gaps between the ranges. */
  readonly ranges = new Map<number, IndexRun[]>()
  readonly tables = new Map<number, Set<string>>()
  /** By instance and task. */
  readonly produced = new Map<string, Map<number, number>>()
  readonly instances = new Map<string, InstanceRow>()
  readonly outbox = new MemoryOutbox()
  nextIds: NextIds = { task: 1, lane: 1, partition: 1, event: 1 }

  /**
   * Starts a new term and appends an entry with it, so that a late append of the previous term finds its
   * number taken.
   */
  takeOver(): { term: number; folded: number; last: number } {
    this.#term += 1
    this.#last += 1
    this.#entries.set(this.#last, { term: this.#term, body: null })
    return { term: this.#term, folded: this.#folded, last: this.#last }
  }

  /** Bodies of entries that have not been flushed to rows yet. */
  unflushed(): string[] {
    const bodies: string[] = []
    for (let number = this.#folded + 1; number <= this.#last; number += 1) {
      const body = this.#entries.get(number)?.body
      if (typeof body === 'string') bodies.push(body)
    }
    return bodies
  }

  append(term: number, { number, body, newRows, newKeys }: Appended): void {
    if (this.#entries.get(number - 1)?.term !== term || this.#entries.has(number)) throw notTheWriter()
    const known = newKeys.filter((key) => this.keys.has(key))
    if (known.length > 0) throw new KnownKeys(known)
    for (const row of newRows) this.partitions.insert(row)
    this.#entries.set(number, { term, body })
    this.#last = number
  }

  flush(term: number, folded: number, images: Images, upTo: number): void {
    if (this.#term !== term || this.#folded !== folded) throw notTheWriter()
    this.#write(images)
    // Keep the newest entry: the next append checks its term.
    for (let number = folded; number < upTo; number += 1) this.#entries.delete(number)
    if (upTo < this.#last) this.#entries.delete(upTo)
    this.#folded = upTo
  }

  stage(term: number, rows: readonly PartitionDescriptor[]): void {
    this.checkTerm(term)
    for (const row of rows) this.partitions.insert(row)
  }

  unstage(term: number, ids: StagedIds): void {
    this.checkTerm(term)
    this.partitions.removeRange(ids)
  }

  checkTerm(term: number): void {
    if (this.#term !== term) throw notTheWriter()
  }

  #write(images: Images): void {
    for (const task of images.tasks.values()) {
      const row = copyTask(task)
      row.failures ??= this.tasks.get(task.id)?.failures ?? null
      this.tasks.set(task.id, row)
      this.tasksByName.set(task.taskId, task.id)
    }
    for (const lane of images.lanes.values()) this.#writeLane(copyLane(lane))
    for (const level of images.levels.values()) this.levels.set(level.level, { ...level })
    for (const row of images.laneTables.values()) this.#writeLaneTable({ ...row })
    for (const [name, time] of images.tableTimes) this.tableTimes.set(name, { ...time })
    for (const [id, status] of images.partitions)
      if (status === null) this.partitions.remove(id)
      else this.partitions.update(id, status)
    for (const [key, stored] of images.keys)
      if (stored === null) this.keys.delete(key)
      else this.keys.set(key, copyKey(stored))
    for (const [name, pace] of images.pace)
      if (pace === null) this.pace.delete(Number(name))
      else this.#writePace(pace)
    for (const { lane, first, last } of images.ranges)
      this.ranges.set(lane, union(this.ranges.get(lane) ?? [], { first, last }))
    for (const [task, added] of images.tables) {
      const tables = this.tables.get(task) ?? new Set<string>()
      this.tables.set(task, tables)
      for (const table of added) tables.add(table)
    }
    for (const { task, instance, at } of images.produced.values()) {
      const produced = this.produced.get(instance) ?? new Map<number, number>()
      this.produced.set(instance, produced.set(task, at))
    }
    for (const { instanceId, role, at } of images.instances.values())
      if (!this.instances.has(instanceId))
        this.instances.set(instanceId, {
          instanceId,
          role,
          firstSeenAt: at,
          lastSeenAt: at,
          totals: noTotals(),
          node: null,
        })
    this.outbox.write(images.outbox)
    for (const added of images.totals.values()) this.#addTotals(added)
    for (const [key, added] of images.throughput)
      this.throughput.set(key, sumOf(this.throughput.get(key), added))
    if (images.nextIds !== null) this.nextIds = { ...images.nextIds }
  }

  #writeLaneTable(row: StoredLaneTable): void {
    const tables = this.laneTables.get(row.lane) ?? new Map<string, StoredLaneTable>()
    this.laneTables.set(row.lane, tables.set(row.table, row))
    const waiting = this.waitingByTable.get(row.table) ?? new Set<number>()
    this.waitingByTable.set(row.table, waiting)
    if (row.turn === null) waiting.delete(row.lane)
    else waiting.add(row.lane)
  }

  #addTotals({ instanceId, role, at, totals }: TotalsAdded): void {
    const row = this.instances.get(instanceId) ?? {
      instanceId,
      role,
      firstSeenAt: at,
      lastSeenAt: at,
      totals: noTotals(),
      node: null,
    }
    const sum = { ...row.totals }
    addTotals(sum, totals)
    this.instances.set(instanceId, { ...row, totals: sum })
  }

  #writeLane(lane: StoredLane): void {
    const isNew = !this.lanes.has(lane.id)
    this.lanes.set(lane.id, lane)
    if (lane.turn === null) this.waiting.delete(lane.id)
    else this.waiting.add(lane.id)
    const siblings = this.lanesOf.get(lane.task) ?? []
    const place = siblings.findIndex(({ level }) => level >= lane.level)
    if (!isNew) siblings[place] = lane
    else siblings.splice(place === -1 ? siblings.length : place, 0, lane)
    this.lanesOf.set(lane.task, siblings)
  }

  #writePace(pace: StoredPace): void {
    const seconds = this.pace.get(pace.task) ?? new Map<number, StoredPace>()
    this.pace.set(pace.task, seconds.set(pace.second, { ...pace }))
    if (seconds.size > PACE_SECONDS_KEPT) seconds.delete(Math.min(...seconds.keys()))
  }
}

function notTheWriter(): StoreUnavailable {
  return new StoreUnavailable('store_unavailable', 'another node is the leader now')
}

function sumOf(row: StoredThroughput | undefined, added: StoredThroughput): StoredThroughput {
  if (row === undefined) return { ...added }
  const records = Math.min(row.records + added.records, Number.MAX_SAFE_INTEGER)
  return { ...row, partitions: row.partitions + added.partitions, records }
}

function union(runs: readonly IndexRun[], added: IndexRun): IndexRun[] {
  const apart = runs.filter(({ first, last }) => last + 1 < added.first || first > added.last + 1)
  const touching = runs.filter(({ first, last }) => last + 1 >= added.first && first <= added.last + 1)
  const first = Math.min(added.first, ...touching.map((run) => run.first))
  const last = Math.max(added.last, ...touching.map((run) => run.last))
  return [...apart, { first, last }].sort((a, b) => a.first - b.first)
}
