import { holdsBarrier } from '../../../handoff/rules/lane-rules.ts'
import { unfinishedStates } from '../../../handoff/rules/life-cycle.ts'
import type { LaneEntry, TaskEntry } from '../../../handoff/rules/task-entry.ts'
import { laneColumns, readLane } from '../rows/entries.ts'
import { type Row, statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import { STEP } from '../windows/lanes.ts'

/** How many lanes are read at a time: reading 1,000 and writing them takes some 50 ms, and others wait for it. */
export const LANES_AT_ONCE = 500

/** What lanes are looked for by, for those that are stored and for those that this transaction has changed. */
const kinds = {
  ready: { stored: 'ready_partitions > 0', isMeant: ({ partitions }: LaneEntry) => partitions.ready > 0 },
  parked: { stored: 'parked_partitions > 0', isMeant: ({ partitions }: LaneEntry) => partitions.parked > 0 },
  unfinished: {
    stored: `${unfinishedStates.map((state) => `${state}_partitions`).join(' + ')} >
      CASE WHEN parked_skipped THEN parked_partitions ELSE 0 END`,
    isMeant: holdsBarrier,
  },
  unpurged: {
    stored: 'purged < done_partitions + cancelled_partitions',
    isMeant: ({ partitions, purged }: LaneEntry) => purged < partitions.done + partitions.cancelled,
  },
} as const

type Kind = keyof typeof kinds

const FROM_LEVEL = `SELECT ${laneColumns} FROM baton.lane WHERE task = $1 AND level >= $2`
const UPWARDS = 'ORDER BY level LIMIT $3 FOR NO KEY UPDATE'
const lanesById = statement(
  'roll-lanes',
  `SELECT ${laneColumns} FROM baton.lane WHERE id = ANY($1::bigint[]) ORDER BY id FOR NO KEY UPDATE`,
)
const laneOfTask = statement(
  'roll-lane-of-task',
  `SELECT ${laneColumns} FROM baton.lane WHERE task = $1 AND level = $2 FOR NO KEY UPDATE`,
)
const lanesOfTasks = statement(
  'roll-lanes-of-tasks',
  `SELECT l.* FROM unnest($1::bigint[], $2::bigint[]) AS wanted (task, level)
   CROSS JOIN LATERAL (
     SELECT ${laneColumns} FROM baton.lane WHERE task = wanted.task AND level = wanted.level FOR NO KEY UPDATE
   ) l`,
)
const lanesFrom = statement('roll-lanes-from', `${FROM_LEVEL} ${UPWARDS}`)
const lanesWith = (kind: Kind) =>
  statement(`roll-${kind}-lanes-from`, `${FROM_LEVEL} AND ${kinds[kind].stored} ${UPWARDS}`)
const lanesFromWith = {
  ready: lanesWith('ready'),
  parked: lanesWith('parked'),
  unfinished: lanesWith('unfinished'),
  unpurged: lanesWith('unpurged'),
}
const lowestUnfinished = statement(
  'roll-lowest-unfinished',
  `SELECT l.* FROM unnest($1::bigint[], $2::bigint[]) AS wanted (task, level)
   CROSS JOIN LATERAL (
     SELECT ${laneColumns} FROM baton.lane
     WHERE task = wanted.task AND level >= wanted.level AND ${kinds.unfinished.stored}
     ${UPWARDS}
   ) l`,
)

/** A lane of a task, or its lanes from there on. */
export interface LaneAt {
  readonly task: TaskEntry
  readonly level: number
}

export interface LanePage {
  readonly lanes: readonly LaneEntry[]
  /** The level from which there may be more; null when there are none. */
  readonly next: number | null
}

/**
 * The lanes that a roll has read, each locked and read once. What it makes of them is written at its end, so those that are
 * known count as they are known and all others as they are stored.
 */
export class KnownLanes {
  readonly #tx: Transaction
  readonly #taskOf: (id: number) => TaskEntry | undefined
  readonly #byId = new Map<number, LaneEntry>()
  readonly #byLevel = new Map<TaskEntry, Map<number, LaneEntry>>()

  constructor(tx: Transaction, taskOf: (id: number) => TaskEntry | undefined) {
    this.#tx = tx
    this.#taskOf = taskOf
  }

  known(id: number): LaneEntry | undefined {
    return this.#byId.get(id)
  }

  /** Rows of partitions by their lanes, which are known. */
  grouped<Of extends { readonly lane: number }>(rows: readonly Of[]): Map<LaneEntry, Of[]> {
    return Map.groupBy(rows, ({ lane: id }) => {
      const lane = this.#byId.get(id)
      if (lane === undefined) throw new Error(`partitions of lane row ${id} were read without its lock`)
      return lane
    })
  }

  async read(ids: Iterable<number>): Promise<void> {
    const missing = [...ids].filter((id) => !this.#byId.has(id))
    if (missing.length > 0) this.#keep(await this.#tx.run(lanesById, [missing]))
  }

  /** So that `of` need not ask for each of them. */
  async readOf(wanted: readonly LaneAt[]): Promise<void> {
    const missing = wanted.filter(({ task, level }) => !this.#byLevel.get(task)?.has(level))
    if (missing.length === 0) return
    this.#keep(
      await this.#tx.run(lanesOfTasks, [
        missing.map(({ task }) => task.id),
        missing.map(({ level }) => level),
      ]),
    )
  }

  async of(task: TaskEntry, level: number): Promise<LaneEntry | undefined> {
    const known = this.#byLevel.get(task)?.get(level)
    if (known !== undefined) return known
    const [lane] = this.#keep(await this.#tx.run(laneOfTask, [task.id, level]))
    return lane
  }

  /** The lowest lanes of a task at or above a level. */
  async from(task: TaskEntry, level: number, limit = LANES_AT_ONCE): Promise<LaneEntry[]> {
    return this.#keep(await this.#tx.run(lanesFrom, [task.id, level, limit]))
  }

  /** The same for those of a kind. There may be more of them than the limit says, where more are known. */
  async with(kind: Kind, { task, level }: LaneAt, limit = LANES_AT_ONCE): Promise<LanePage> {
    const found = this.#keep(await this.#tx.run(lanesFromWith[kind], [task.id, level, limit]))
    const last = found.length < limit ? undefined : found.at(-1)?.level
    return {
      lanes: this.#knownWith(kind, { task, level }, last),
      next: last === undefined ? null : last + 1,
    }
  }

  /** Page by page, for who does not need all of them. */
  async *pagesWith(kind: Kind, task: TaskEntry): AsyncGenerator<readonly LaneEntry[]> {
    for (let level: number | null = 0; level !== null; ) {
      const page: LanePage = await this.with(kind, { task, level })
      if (page.lanes.length > 0) yield page.lanes
      level = page.next
    }
  }

  /** The lane of each task that keeps its barrier from opening the next level; none for those that have nothing to do. */
  async lowestUnfinished(wanted: readonly LaneAt[]): Promise<Map<TaskEntry, LaneEntry>> {
    const lowest = new Map<TaskEntry, LaneEntry>()
    let left = wanted
    // Of those that are stored as unfinished this transaction may have finished the first, or the first thousands.
    for (let limit = 1; left.length > 0; limit = Math.min(limit * 10, STEP)) {
      const rows = await this.#tx.run(lowestUnfinished, [
        left.map(({ task }) => task.id),
        left.map(({ level }) => level),
        limit,
      ])
      const found = Map.groupBy(this.#keep(rows), ({ task }) => task)
      left = left.flatMap(({ task, level }) => {
        const stored = found.get(task) ?? []
        const last = stored.length < limit ? undefined : stored.at(-1)?.level
        const [lane] = this.#knownWith('unfinished', { task, level }, last)
        if (lane !== undefined) lowest.set(task, lane)
        return lane !== undefined || last === undefined ? [] : [{ task, level: last + 1 }]
      })
    }
    return lowest
  }

  #knownWith(kind: Kind, { task, level }: LaneAt, last = Number.POSITIVE_INFINITY): LaneEntry[] {
    return [...(this.#byLevel.get(task)?.values() ?? [])]
      .filter((lane) => lane.level >= level && lane.level <= last && kinds[kind].isMeant(lane))
      .sort((a, b) => a.level - b.level)
  }

  #keep(rows: readonly Row[]): LaneEntry[] {
    return rows.map((row) => this.#byId.get(row['id'] as number) ?? this.#add(row))
  }

  #add(row: Row): LaneEntry {
    const task = this.#taskOf(row['task'] as number)
    if (task === undefined) throw new Error(`lane row ${row['id']} was read without the lock of its task`)
    const lane = readLane(row, task)
    this.#byId.set(lane.id, lane)
    const ofTask = this.#byLevel.get(task)
    if (ofTask === undefined) this.#byLevel.set(task, new Map([[lane.level, lane]]))
    else ofTask.set(lane.level, lane)
    return lane
  }
}
