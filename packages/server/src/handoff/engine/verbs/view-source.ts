import type { Disk } from '../../disk.ts'
import type { Policy } from '../../rules/policy.ts'
import type { Progress } from '../../rules/progress.ts'
import { isLaneOpen } from '../../rules/task.ts'
import type { Amount } from '../../views/queries.ts'
import type { Memory } from '../state/memory.ts'
import type { Lane, MutableAmount, Partition } from '../state/memory-rows.ts'

/** What views are read from. */
export interface ViewSource {
  readonly disk: Disk
  readonly inMemory: OnlyInMemory
  readonly policy: Policy
  readonly now: number
}

/** What views show although rows do not have it. */
export interface OnlyInMemory {
  readonly pausedTables: ReadonlySet<string>
  /**
   * What waits on open levels of a task, or on one of them, although its table is paused. Undefined if there is
   * nothing.
   */
  heldIn(task: number, level?: number): Amount | undefined
  /** What the worker of a leased partition reported. */
  progressOf(partition: number): Progress | null
  /** The leases of an instance, in any order. */
  leasesOf(holder: string): Iterable<Partition>
}

export const onlyInMemory = ({ order: { tables }, tasks, partitions, leases }: Memory): OnlyInMemory => ({
  pausedTables: tables.paused,
  heldIn(id, level) {
    const task = tables.paused.size === 0 ? undefined : tasks.get(id)
    if (task === undefined) return undefined
    const held = { partitions: 0, records: 0 }
    const lanes = level === undefined ? task.lanes.values() : [task.lanes.get(level)]
    for (const lane of lanes) if (lane !== undefined) addHeld(held, lane, tables.paused)
    return held.partitions === 0 ? undefined : held
  },
  progressOf: (partition) => partitions.get(partition)?.progress ?? null,
  leasesOf: (holder) => leases.of(holder),
})

function addHeld(held: MutableAmount, lane: Lane, paused: ReadonlySet<string>): void {
  const { parentTask, level, table, mixed, tables, partitions, records } = lane
  if (!isLaneOpen(parentTask, level)) return
  if (mixed === null) {
    if (!paused.has(table)) return
    held.partitions += partitions.ready
    held.records += records.ready
    return
  }
  const isFewer = tables.size < paused.size
  for (const name of isFewer ? tables.keys() : paused) {
    const row = isFewer && !paused.has(name) ? undefined : tables.get(name)
    held.partitions += row?.ready ?? 0
    held.records += row?.readyRecords ?? 0
  }
}
