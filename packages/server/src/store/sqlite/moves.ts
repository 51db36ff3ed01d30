import type { DatabaseSync } from 'node:sqlite'
import { type PartitionState, partitionStates } from '../../handoff/rules/life-cycle.ts'
import type { LaneEntry } from '../../handoff/rules/task-entry.ts'
import { addToCounters } from './entries.ts'

/** The lane's tags, what its counters and its task's changed by, and its id. */
export type MoveRow = readonly (string | number)[]

const counterPlace = Object.fromEntries(partitionStates.map((state, at) => [state, 2 * at])) as Readonly<
  Record<PartitionState, number>
>

const nothing: readonly number[] = partitionStates.flatMap(() => [0, 0])

/**
 * How many partitions the running transaction moved from state to state, lane by lane. For most transactions this is
 * all that the journal has to know about lanes and tasks, and a third of what their rows would take.
 */
export class Moves {
  readonly #changes = new Map<LaneEntry, number[]>()
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  count(lane: LaneEntry, from: PartitionState | null, to: PartitionState | null, recordCount: number): void {
    const changes = this.#of(lane)
    if (from !== null) add(changes, counterPlace[from], -1, -recordCount)
    if (to !== null) add(changes, counterPlace[to], 1, recordCount)
  }

  /** Ends the running transaction's part. `lanes` are all that it touched. */
  close(lanes: Iterable<LaneEntry>): MoveRow[] {
    const rows: MoveRow[] = []
    for (const lane of lanes)
      rows.push([String(lane.finish), String(lane.retryFinish), ...this.#of(lane), lane.id])
    this.forget()
    return rows
  }

  replay(rows: readonly MoveRow[]): void {
    for (const row of rows) {
      this.#sql.moveInLane.run(...row)
      this.#sql.moveInTask.run(...row.slice(2))
    }
  }

  forget(): void {
    this.#changes.clear()
  }

  #of(lane: LaneEntry): number[] {
    const known = this.#changes.get(lane)
    if (known !== undefined) return known
    const changes = nothing.slice()
    this.#changes.set(lane, changes)
    return changes
  }
}

function add(changes: number[], at: number, partitions: number, records: number): void {
  changes[at] = (changes[at] ?? 0) + partitions
  changes[at + 1] = (changes[at + 1] ?? 0) + records
}

function prepare(db: DatabaseSync) {
  return {
    moveInLane: db.prepare(`UPDATE lane SET finish = ?, retry_finish = ?, ${addToCounters} WHERE id = ?`),
    moveInTask: db.prepare(
      `UPDATE task SET ${addToCounters} WHERE id = (SELECT task FROM lane WHERE id = ?)`,
    ),
  }
}
