import type { ModelLane } from './model-task.ts'

/** A compute table: its settings, and what of it is leased. */
export interface ModelTable {
  readonly name: string
  maxLeases: number
  paused: boolean
  leased: number
  /** Lanes that had partitions of it. */
  readonly lanes: Set<ModelLane>
}

/** Nothing of it may be handed out. */
export const isBlocked = (table: ModelTable): boolean => table.paused || isAtLimit(table)

export const isAtLimit = ({ leased, maxLeases }: ModelTable): boolean => leased >= maxLeases

export class ModelTables {
  readonly all = new Map<string, ModelTable>()

  of(name: string): ModelTable {
    let table = this.all.get(name)
    if (table === undefined) {
      table = { name, maxLeases: Number.POSITIVE_INFINITY, paused: false, leased: 0, lanes: new Set() }
      this.all.set(name, table)
    }
    return table
  }

  get isAnyBlocked(): boolean {
    for (const table of this.all.values()) if (isBlocked(table)) return true
    return false
  }

  /** Lanes become able or unable to serve when a table becomes so. */
  change(table: ModelTable, change: () => void): void {
    const wasBlocked = isBlocked(table)
    change()
    if (isBlocked(table) !== wasBlocked) for (const lane of table.lanes) lane.epoch += 1
  }
}
