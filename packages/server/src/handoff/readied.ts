import type { PreparedOf } from './store.ts'

/** More kinds than this are told as "anything": those who wait look. */
const MOST_KINDS = 100

/** Counts the partitions that a transaction made ready, and of which tasks and tables they are. */
export class Prepared {
  count = 0
  /** By task, then by table; the table is null where it may be any of the task. */
  #kinds: Map<string, Map<string | null, number>> | null = null
  #size = 0
  #isAnything = false

  add(task: string, table: string | null, count: number): void {
    this.count += count
    this.#addKind(task, table, count)
  }

  #addKind(task: string, table: string | null, count: number): void {
    if (count <= 0 || this.#isAnything) return
    this.#kinds ??= new Map()
    let tables = this.#kinds.get(task)
    if (tables === undefined) {
      tables = new Map()
      this.#kinds.set(task, tables)
    }
    if (!tables.has(table)) this.#size += 1
    tables.set(table, (tables.get(table) ?? 0) + count)
    if (this.#size > MOST_KINDS) this.#anything()
  }

  #anything(): void {
    this.#isAnything = true
    this.#kinds = null
  }

  /** What others counted; without kinds it may be anything. */
  merge(count: number, kinds: readonly PreparedOf[] | null | undefined): void {
    if (count > 0 && (kinds === null || kinds === undefined)) this.#anything()
    else for (const [task, table, ready] of kinds ?? []) this.#addKind(task, table, ready)
    this.count += count
  }

  /** Null: it may be anything. */
  get kinds(): readonly PreparedOf[] | null {
    if (this.#isAnything) return null
    const kinds: PreparedOf[] = []
    for (const [task, tables] of this.#kinds ?? [])
      for (const [table, count] of tables) kinds.push([task, table, count])
    return kinds
  }
}
