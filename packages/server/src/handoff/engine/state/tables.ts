import { NO_TABLE_SETTINGS } from '../../rules/policy.ts'
import type { StoredTableSettings } from '../../stored.ts'
import { type Lane, Table } from './memory-rows.ts'

/** The compute tables that have open work, settings, or a choice that names them. */
export class Tables {
  readonly #byName = new Map<string, Table>()
  /** Names of those that are paused. */
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

  /** Call `place` of the order afterwards. */
  setSettings({ table: name, maxLeases, paused }: StoredTableSettings): Table {
    const table = this.obtain(name)
    table.settings = maxLeases === null && !paused ? NO_TABLE_SETTINGS : { maxLeases, paused }
    if (paused) this.paused.add(name)
    else this.paused.delete(name)
    return table
  }

  /** A lane with this table was added to memory. */
  use(name: string): Table {
    const table = this.obtain(name)
    table.lanes += 1
    return table
  }

  unuse(table: Table): void {
    table.lanes -= 1
    this.dropIfUnneeded(table)
  }

  dropIfUnneeded({ name, lanes, readers, settings }: Table): void {
    if (name !== null && lanes === 0 && readers === 0 && settings === NO_TABLE_SETTINGS)
      this.#byName.delete(name)
  }

  /** Whether it has work or settings. */
  isShown({ lanes, settings }: Table): boolean {
    return lanes > 0 || settings !== NO_TABLE_SETTINGS
  }

  /** A worker asked for these tables; null: for any. */
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
      names.splice(positionOf(name, names), 0, name)
      if (names.length > limit) names.pop()
    }
    return names.map((name) => this.#byName.get(name) as Table)
  }
}

function positionOf(name: string, sorted: readonly string[]): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] as string) < name) low = middle + 1
    else high = middle
  }
  return low
}

export const tablesOf = (lane: Lane): Table[] =>
  lane.several === null
    ? [lane.firstTable]
    : Array.from(lane.tables.values(), ({ place: { table } }) => table)
