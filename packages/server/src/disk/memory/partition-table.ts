import {
  newPartition,
  type PartitionDescriptor,
  type PartitionStatus,
  type StoredPartition,
} from '../../handoff/partition.ts'
import type { StagedIds } from '../../handoff/stored.ts'

/** The partitions of one lane, found by id and by index. */
interface LaneRows {
  /** Ascending. */
  readonly ids: number[]
  readonly byIndex: Map<number, number>
  /** Ready partitions that wait on another line than `fresh`. */
  readonly returned: Set<number>
}

const noRows: LaneRows = { ids: [], byIndex: new Map(), returned: new Set() }

/** The rows of partitions and the indexes over them. */
export class PartitionTable {
  readonly rows = new Map<number, StoredPartition>()
  readonly leased = new Set<number>()
  readonly delayed = new Set<number>()
  readonly #lanes = new Map<number, LaneRows>()

  ofLane(lane: number): LaneRows {
    return this.#lanes.get(lane) ?? noRows
  }

  insert(descriptor: PartitionDescriptor): void {
    const { id, lane, index } = descriptor
    let rows = this.#lanes.get(lane)
    if (rows === undefined) {
      rows = { ids: [], byIndex: new Map(), returned: new Set() }
      this.#lanes.set(lane, rows)
    }
    if (this.rows.has(id)) throw new Error(`partition ${id} has a row already`)
    if (rows.byIndex.has(index)) throw new Error(`index ${index} of lane ${lane} has a row already`)
    if ((rows.ids.at(-1) ?? 0) < id) rows.ids.push(id)
    else rows.ids.splice(firstAbove(rows.ids, id), 0, id)
    rows.byIndex.set(index, id)
    this.rows.set(id, newPartition(descriptor))
  }

  /** Images are made from existing rows, so an image without a row is a bug in the engine. */
  update(id: number, status: PartitionStatus): void {
    const row = this.rows.get(id)
    if (row === undefined) throw new Error(`partition ${id} is written and has no row`)
    Object.assign(row, status)
    mark(this.leased, id, row.state === 'leased')
    mark(this.delayed, id, row.state === 'delayed')
    mark(this.ofLane(row.lane).returned, id, row.state === 'ready' && row.line !== 'fresh')
  }

  remove(id: number): void {
    const row = this.rows.get(id)
    if (row === undefined) return
    const rows = this.ofLane(row.lane)
    rows.ids.splice(firstAbove(rows.ids, id) - 1, 1)
    rows.byIndex.delete(row.index)
    rows.returned.delete(id)
    this.leased.delete(id)
    this.delayed.delete(id)
    this.rows.delete(id)
  }

  removeRange({ first, last }: StagedIds): void {
    for (const id of [...this.rows.keys()]) if (id >= first && id <= last) this.remove(id)
  }
}

function mark(ids: Set<number>, id: number, isIn: boolean): void {
  if (isIn) ids.add(id)
  else ids.delete(id)
}

/** The position of the first id greater than `than`. The ids must ascend. */
export function firstAbove(ids: readonly number[], than: number): number {
  let low = 0
  let high = ids.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ids[middle] ?? 0) <= than) low = middle + 1
    else high = middle
  }
  return low
}
