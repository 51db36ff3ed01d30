import type { NewlyReadyOf } from '../store.ts'

/** With more kinds than this, all waiting pulls are woken. */
const MOST_KINDS = 100

/** Counts the partitions that a transaction made ready, by task and table. */
export class NewlyReady {
  count = 0
  /** By task, then by table. Null: any task, or any table of the task. */
  #kinds: Map<string | null, Map<string | null, number>> | null = null
  #size = 0
  #isAnything = false

  add(task: string | null, table: string | null, count: number): void {
    this.count += count
    if (count <= 0 || this.#isAnything) return
    this.#kinds ??= new Map()
    let tables = this.#kinds.get(task)
    if (tables === undefined) {
      tables = new Map()
      this.#kinds.set(task, tables)
    }
    if (!tables.has(table)) this.#size += 1
    tables.set(table, (tables.get(table) ?? 0) + count)
    if (this.#size <= MOST_KINDS) return
    this.#isAnything = true
    this.#kinds = null
  }

  /** Null: any task or table. */
  get kinds(): readonly NewlyReadyOf[] | null {
    if (this.#isAnything) return null
    const kinds: NewlyReadyOf[] = []
    for (const [task, tables] of this.#kinds ?? [])
      for (const [table, count] of tables) kinds.push([task, table, count])
    return kinds
  }
}
