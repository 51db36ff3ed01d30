import type { LaneEntry, TaskEntry } from '../../handoff/rules/task-entry.ts'

/** Which entries of the ledger are ahead of what is said of them elsewhere. */
export class ChangedEntries {
  readonly tasks = new Set<TaskEntry>()
  readonly lanes = new Set<LaneEntry>()
  readonly levels = new Set<number>()

  get isEmpty(): boolean {
    return this.tasks.size === 0 && this.lanes.size === 0 && this.levels.size === 0
  }

  add(others: ChangedEntries): void {
    for (const task of others.tasks) this.tasks.add(task)
    for (const lane of others.lanes) this.lanes.add(lane)
    for (const level of others.levels) this.levels.add(level)
  }

  clear(): void {
    this.tasks.clear()
    this.lanes.clear()
    this.levels.clear()
  }
}
