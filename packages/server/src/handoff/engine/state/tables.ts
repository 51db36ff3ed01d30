import { NO_TABLE_SETTINGS } from '../../rules/policy.ts'
import type { StoredTableSettings } from '../../stored.ts'
import { lowerBound } from './lower-bound.ts'
import { type Lane, Table, type Task } from './memory-rows.ts'

/** The compute tables that have open work or settings. */
export class Tables {
  readonly #byName = new Map<string, Table>()
  readonly paused = new Set<string>()
  /** When a worker last asked for anything. */
  askedAt: number | null = null

  get(name: string): Table | undefined {
    return this.#byName.get(name)
  }

  obtain(name: string): Table {
    let table = this.#byName.get(name)
    if (table === undefined) {
      table = new Table(name)
      this.#byName.set(name, table)
    }
    return table
  }

  /** Call `reorder` of the order afterwards. */
  setSettings({ table: name, maxLeases, paused }: StoredTableSettings): Table {
    const table = this.obtain(name)
    table.settings = maxLeases === null && !paused ? NO_TABLE_SETTINGS : { maxLeases, paused }
    if (paused) this.paused.add(name)
    else this.paused.delete(name)
    return table
  }

  /** A lane of this task with this table was added to memory. */
  use(name: string, task: Task): Table {
    const table = this.obtain(name)
    table.lanesOf.set(task, (table.lanesOf.get(task) ?? 0) + 1)
    return table
  }

  unuse(table: Table, task: Task): void {
    const lanes = table.lanesOf.get(task) ?? 0
    if (lanes > 1) table.lanesOf.set(task, lanes - 1)
    else table.lanesOf.delete(task)
    this.#dropIfUnneeded(table)
  }

  #dropIfUnneeded({ name, lanesOf, settings }: Table): void {
    if (name !== null && lanesOf.size === 0 && settings === NO_TABLE_SETTINGS) this.#byName.delete(name)
  }

  isShown({ lanesOf, settings }: Table): boolean {
    return lanesOf.size > 0 || settings !== NO_TABLE_SETTINGS
  }

  asked(names: Iterable<string> | null, now: number): void {
    if (names === null) this.askedAt = now
    else
      for (const name of names) {
        const table = this.#byName.get(name)
        if (table !== undefined) table.askedAt = now
      }
  }

  /** Those with work or settings after this name, by name. */
  page(after: string | null, limit: number): Table[] {
    const names: string[] = []
    for (const [name, table] of this.#byName) {
      if ((after !== null && name <= after) || !this.isShown(table)) continue
      if (names.length === limit && name > (names.at(-1) as string)) continue
      names.splice(lowerBound(names, name, byName), 0, name)
      if (names.length > limit) names.pop()
    }
    return names.map((name) => this.#byName.get(name) as Table)
  }
}

const byName = (a: string, b: string): number => (a < b ? -1 : a === b ? 0 : 1)

export const tablesOf = (lane: Lane): Table[] =>
  lane.mixed === null
    ? [lane.firstTable]
    : Array.from(lane.mixed.tables.values(), ({ entry: { table } }) => table)
