import type { DatabaseSync } from 'node:sqlite'
import type { SqlTable } from '../../../packages/server/src/disk/sql-table.ts'
import { arrayQuery, sqlite } from '../../../packages/server/src/disk/sqlite/dialect.ts'
import type { RowChanges } from '../../../packages/server/src/handoff/disk.ts'
import { decodeEntry, type Entry } from '../../../packages/server/src/handoff/engine/entry.ts'
import type { DoneWithin } from '../../../packages/server/src/handoff/engine/throughput.ts'
import type { PartitionStatus, StoredPartition } from '../../../packages/server/src/handoff/partition.ts'
import type {
  StoredKey,
  StoredLane,
  StoredTableSettings,
  StoredTask,
} from '../../../packages/server/src/handoff/stored.ts'
import type { ModelLane, ModelPartition } from './model-task.ts'

type Step = 'minute' | 'hour'
type Done = Readonly<Record<Step, { partitions: number; records: number }>>

/** What is durable: the rows, and the entries that are not flushed to rows yet. */
export class Truth {
  readonly #rows: ReturnType<typeof prepare>
  /** The number of changes to the database, and the last flushed entry, when it was last read. */
  #changes = -1
  #flushed = 0
  /** Those that are not flushed, by number. Each is read and decoded once. */
  readonly #entries = new Map<number, Entry>()
  /** Rows that were read: of lanes, and of partitions that count, by lane and index. Flushes change them. */
  readonly #lanesRead = new Map<number, StoredLane>()
  readonly #partitionsRead = new Map<number, StoredPartition>()
  readonly #placesRead = new Map<number, number>()
  /** What the entries say. */
  readonly #tasks = new Map<number, StoredTask>()
  readonly #tasksByName = new Map<string, StoredTask>()
  readonly #lanes = new Map<number, StoredLane>()
  readonly #partitions = new Map<number, PartitionStatus | null>()
  readonly #keys = new Map<string, StoredKey | null>()
  readonly #checkpoints = new Map<number, string | null>()
  readonly #tableSettings = new Map<string, StoredTableSettings | null>()
  readonly #pausedAt = new Map<string, number | null>()
  #added: DoneWithin[] = []
  #done: Map<number, Done> | null = null

  constructor(db: DatabaseSync) {
    this.#rows = prepare(db)
  }

  /** To be called before it is used: the database has changed since the last time. */
  refresh(): this {
    const [changes, flushed] = this.#rows.changes.get() ?? [0, 0]
    if (changes === this.#changes) return this
    this.#changes = changes
    this.#done = null
    if (flushed !== this.#flushed) this.#forgetFlushed(flushed)
    let last = flushed
    for (const number of this.#entries.keys()) last = number
    const bodies = Map.groupBy(this.#rows.entries.all(last), ([number]) => number)
    for (const [number, parts] of bodies) {
      const entry = decodeEntry(Buffer.concat(parts.map(([, , body]) => body)).toString())
      this.#entries.set(number, entry)
      this.#add(entry)
    }
    return this
  }

  /** Reads everything again: other writes than those of flushes remove rows, and a wrong one may change any. */
  readAgain(): void {
    this.#changes = -1
    this.#entries.clear()
    this.#forgetEntries()
    for (const read of [this.#lanesRead, this.#partitionsRead, this.#placesRead]) read.clear()
    this.refresh()
    for (const row of this.#rows.lanes.all()) this.#lanesRead.set(row.id, row)
    for (const row of this.#rows.partitions.all()) this.#keep(row, this.laneWithId(row.lane))
  }

  /** A flush writes these rows. */
  forget({ lanes, partitions }: RowChanges): void {
    for (const id of lanes.keys()) this.#lanesRead.delete(id)
    for (const id of partitions.keys()) this.#partitionsRead.delete(this.#placesRead.get(id) ?? -1)
  }

  #forgetFlushed(upTo: number): void {
    this.#flushed = upTo
    for (const number of this.#entries.keys()) if (number <= upTo) this.#entries.delete(number)
    this.#forgetEntries()
    for (const entry of this.#entries.values()) this.#add(entry)
  }

  #forgetEntries(): void {
    for (const said of [this.#tasks, this.#tasksByName, this.#lanes, this.#partitions, this.#keys])
      said.clear()
    for (const said of [this.#checkpoints, this.#tableSettings, this.#pausedAt]) said.clear()
    this.#added = []
  }

  #add(entry: Entry): void {
    for (const task of entry.tasks) {
      this.#tasks.set(task.id, task)
      this.#tasksByName.set(task.taskId, task)
    }
    for (const lane of entry.lanes) this.#lanes.set(lane.id, lane)
    for (const [id, status] of entry.partitions) this.#partitions.set(id, status)
    for (const [key, row] of entry.keys) this.#keys.set(key, row)
    for (const [id, text] of entry.checkpoints) this.#checkpoints.set(id, text)
    for (const [name, row] of entry.tableSettings) this.#tableSettings.set(name, row)
    for (const [name, , , pausedAt] of entry.instances)
      if (pausedAt !== undefined) this.#pausedAt.set(name, pausedAt)
    for (const done of entry.throughput) this.#added.push(done)
  }

  task(taskId: string): StoredTask | undefined {
    return this.#tasksByName.get(taskId) ?? this.#rows.task.get(taskId)
  }

  /** Whether a partition is stored and counts. */
  has(task: number, level: number, index: number): boolean {
    const lane = this.#find(task, level)
    return lane !== undefined && this.#rowOf(lane, index) !== undefined
  }

  lane(lane: ModelLane): StoredLane | undefined {
    if (lane.id === 0) lane.id = this.#find(this.task(lane.task.taskId)?.id ?? 0, lane.level)?.id ?? 0
    return this.laneWithId(lane.id)
  }

  laneWithId(id: number): StoredLane | undefined {
    const known = this.#lanes.get(id) ?? this.#lanesRead.get(id)
    if (known !== undefined) return known
    const row = this.#rows.lane.get(id)
    if (row !== undefined) this.#lanesRead.set(id, row)
    return row
  }

  /** What the history counts as done within all minutes, and within all hours, of a level. */
  done(task: number, level: number): Done {
    if (this.#done === null) {
      this.#done = new Map()
      for (const [of, ofLevel, step, partitions, records] of this.#rows.throughput.all())
        addTo(doneOf(this.#done, of, ofLevel)[step], { partitions, records })
      for (const row of this.#added) {
        const { minute, hour } = doneOf(this.#done, row.task, row.level)
        addTo(minute, row)
        addTo(hour, row)
      }
    }
    return doneOf(this.#done, task, level)
  }

  #find(task: number, level: number): StoredLane | undefined {
    for (const lane of this.#lanes.values()) if (lane.task === task && lane.level === level) return lane
    return this.#rows.laneOf.get(task, level)
  }

  /** Tasks with a call-back that is not closed. */
  *staging(): Generator<string> {
    for (const task of this.#tasks.values()) if (task.staging !== null) yield task.taskId
    for (const { id, taskId } of this.#rows.staging.all()) if (!this.#tasks.has(id)) yield taskId
  }

  /** The row of a partition, if there is one that counts. */
  partition(
    partition: ModelPartition,
  ): { readonly id: number; readonly status: PartitionStatus } | undefined {
    const lane = this.lane(partition.lane)
    const row = lane && this.#rowOf(lane, partition.descriptor.index)
    if (row === undefined) return undefined
    const written = this.#partitions.get(row.id)
    return written === null ? undefined : { id: row.id, status: written ?? row }
  }

  #rowOf(lane: StoredLane, index: number): StoredPartition | undefined {
    return (
      this.#partitionsRead.get(placeOf(lane, index)) ??
      this.#keep(this.#rows.partition.get(lane.id, index), lane)
    )
  }

  /** A row counts up to the tail of its lane. */
  #keep(row: StoredPartition | undefined, lane: StoredLane | undefined): StoredPartition | undefined {
    if (row === undefined || lane === undefined || row.id > lane.tail) return undefined
    const place = placeOf(lane, row.index)
    this.#partitionsRead.set(place, row)
    this.#placesRead.set(row.id, place)
    return row
  }

  /** All leased partitions, with their lane and task. */
  *leased(): Generator<{
    readonly row: StoredPartition
    readonly lane: StoredLane
    readonly task: StoredTask
  }> {
    const ids = new Set(this.#rows.leased.all().map(([id]) => id))
    for (const id of this.#partitions.keys()) ids.add(id)
    for (const id of [...ids].sort((a, b) => a - b)) {
      const row = this.#rows.partitionWithId.get(id)
      const written = this.#partitions.get(id)
      const status = written === undefined ? row : written
      if (row === undefined || status?.state !== 'leased') continue
      const lane = this.laneWithId(row.lane)
      const task = this.#tasks.get(lane?.task ?? 0) ?? this.#rows.taskWithId.get(lane?.task ?? 0)
      if (lane !== undefined && task !== undefined) yield { row: { ...row, ...status }, lane, task }
    }
  }

  key(key: string): StoredKey | undefined {
    const written = this.#keys.get(key)
    return written === null ? undefined : (written ?? this.#rows.key.get(key))
  }

  checkpoint(partition: number): string | null {
    const written = this.#checkpoints.get(partition)
    return written === undefined ? (this.#rows.checkpoint.get(partition)?.text ?? null) : written
  }

  tableSettings(name: string): StoredTableSettings | undefined {
    const written = this.#tableSettings.get(name)
    return written === null ? undefined : (written ?? this.#rows.tableSettings.get(name))
  }

  /** Since when an instance is paused. */
  pausedAt(instanceId: string): number | null {
    const written = this.#pausedAt.get(instanceId)
    return written === undefined ? (this.#rows.pausedAt.get(instanceId)?.[0] ?? null) : written
  }
}

/** Finds rows of a table; `where` is the SQL after its name. */
function finder<Row extends object>(db: DatabaseSync, table: SqlTable<Row>, where: string) {
  const statement = arrayQuery<unknown[]>(db, `SELECT ${table.selected()} FROM ${table.name} ${where}`)
  return {
    get: (...values: (number | string)[]): Row | undefined => {
      const found = statement.get(...values)
      return found && table.read(found)
    },
    all: (): Row[] => statement.all().map((found) => table.read(found)),
  }
}

function prepare(db: DatabaseSync) {
  type Counted = [task: number, level: number, step: Step, partitions: number, records: number]
  return {
    changes: arrayQuery<[changes: number, flushed: number]>(
      db,
      'SELECT total_changes(), number FROM flushed',
    ),
    task: finder(db, sqlite.tasks, 'WHERE task_id = ?'),
    taskWithId: finder(db, sqlite.tasks, 'WHERE id = ?'),
    entries: arrayQuery<[number: number, part: number, body: Uint8Array]>(
      db,
      'SELECT number, part, substr(body, 1, size) FROM entry_slot WHERE number > ? ORDER BY number, part',
    ),
    staging: finder(db, sqlite.tasks, 'WHERE staging IS NOT NULL'),
    lanes: finder(db, sqlite.lanes, ''),
    partitions: finder(db, sqlite.partitions, ''),
    lane: finder(db, sqlite.lanes, 'WHERE id = ?'),
    laneOf: finder(db, sqlite.lanes, 'WHERE task = ? AND level = ?'),
    partition: finder(db, sqlite.partitions, 'WHERE lane = ? AND idx = ?'),
    partitionWithId: finder(db, sqlite.partitions, 'WHERE id = ?'),
    leased: arrayQuery<[number]>(db, "SELECT id FROM partition WHERE state = 'leased'"),
    key: finder(db, sqlite.keys, 'WHERE key = ?'),
    checkpoint: finder(db, sqlite.checkpoints, 'WHERE partition = ?'),
    tableSettings: finder(db, sqlite.tableSettings, 'WHERE name = ?'),
    pausedAt: arrayQuery<[number | null]>(db, 'SELECT paused_at FROM instance WHERE instance_id = ?'),
    throughput: arrayQuery<Counted>(
      db,
      'SELECT task, level, step, sum(partitions), sum(records) FROM throughput GROUP BY task, level, step',
    ),
  }
}

/** More levels than any task has here, and more indexes than any lane. */
const LEVELS = 1000
const INDEXES = 1_000_000

const placeOf = ({ id }: StoredLane, index: number): number => id * INDEXES + index

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
