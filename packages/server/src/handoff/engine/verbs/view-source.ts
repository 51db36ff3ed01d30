import type { Disk } from '../../disk.ts'
import type { Policy } from '../../rules/policy.ts'
import { isLaneOpen } from '../../rules/task.ts'
import type { Amount } from '../../views/queries.ts'
import type { Memory } from '../state/memory.ts'
import type { Lane, MutableAmount } from '../state/memory-rows.ts'

export interface ViewSource {
  readonly disk: Disk
  readonly memory: Memory
  readonly policy: Policy
  /** This node, and since when it leads. */
  readonly leader: { readonly node: string | undefined; readonly since: number }
  readonly now: number
}

/** What waits on open levels, or on one, although its table is paused. Undefined: nothing. */
export function heldIn({ order, tasks }: Memory, id: number, level?: number): Amount | undefined {
  const { paused } = order.tables
  const task = paused.size === 0 ? undefined : tasks.get(id)
  if (task === undefined) return undefined
  const held = { partitions: 0, records: 0 }
  const lanes = level === undefined ? task.lanes.values() : [task.lanes.get(level)]
  for (const lane of lanes) if (lane !== undefined) addHeld(held, lane, paused)
  return held.partitions === 0 ? undefined : held
}

function addHeld(held: MutableAmount, lane: Lane, paused: ReadonlySet<string>): void {
  const { parentTask, level, table, mixed, partitions, records } = lane
  if (!isLaneOpen(parentTask, level)) return
  if (mixed === null) {
    if (!paused.has(table)) return
    held.partitions += partitions.ready
    held.records += records.ready
    return
  }
  const { tables } = mixed
  const isFewer = tables.size < paused.size
  for (const name of isFewer ? tables.keys() : paused) {
    const row = isFewer && !paused.has(name) ? undefined : tables.get(name)
    held.partitions += row?.ready ?? 0
    held.records += row?.readyRecords ?? 0
  }
}
