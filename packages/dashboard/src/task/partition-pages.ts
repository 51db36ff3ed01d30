import type { PartitionRow } from '@baton/protocol'

interface PageOfRows {
  readonly rows: readonly PartitionRow[]
  readonly next: string | null
}

interface Page {
  readonly cursor: string | null
  /** The position of its first row in the whole list. */
  start: number
  count: number
  /** Dropped when the page is far from the visible rows. Its cursor can load it again. */
  rows: readonly PartitionRow[] | undefined
}

/** The number of pages that keep their rows. Of the others, only the cursor and the length are kept. */
const PAGES_KEPT = 30
/** A filter may match nothing in long stretches: the most empty pages that are skipped in one go. */
const EMPTY_PAGES_PASSED = 50

/**
 * A list of any length that keeps only the rows near the visible ones in memory. The service returns pages by
 * cursor, so the list grows as the user scrolls. A dropped page is loaded again with its cursor.
 */
export class PartitionPages {
  readonly #fetch: (cursor: string | null) => Promise<PageOfRows>
  readonly #pages: Page[] = []
  #next: string | null | undefined
  #growing: Promise<void> | undefined

  constructor(fetch: (cursor: string | null) => Promise<PageOfRows>) {
    this.#fetch = fetch
  }

  /** The number of rows known so far. */
  get length(): number {
    const last = this.#pages.at(-1)
    return last === undefined ? 0 : last.start + last.count
  }

  /** Whether there may be more rows. */
  get hasMore(): boolean {
    return this.#next !== null
  }

  row(at: number): PartitionRow | undefined {
    const page = this.#pageAt(at)
    return page?.rows?.[at - page.start]
  }

  /** Appends the next page with rows. */
  grow(): Promise<void> {
    this.#growing ??= this.#append().finally(() => {
      this.#growing = undefined
    })
    return this.#growing
  }

  /** Loads the rows from `first` to `last` again, and drops those far away. */
  async refresh(first: number, last: number): Promise<void> {
    const inView = this.#pages.filter((page) => page.start <= last && page.start + page.count > first)
    for (const page of inView) {
      const { rows } = await this.#fetch(page.cursor)
      page.rows = rows
      page.count = rows.length
    }
    this.#renumber()
    this.#letGo(first)
  }

  /** Whether rows in this range were dropped and have to be loaded again. */
  lacks(first: number, last: number): boolean {
    return this.#pages.some(
      (page) => page.rows === undefined && page.start <= last && page.start + page.count > first,
    )
  }

  async #append(): Promise<void> {
    for (let passed = 0; passed < EMPTY_PAGES_PASSED && this.hasMore; passed += 1) {
      const cursor = this.#next ?? null
      const { rows, next } = await this.#fetch(cursor)
      this.#next = next
      if (rows.length === 0) continue
      this.#pages.push({ cursor, start: this.length, count: rows.length, rows })
      return
    }
  }

  #pageAt(at: number): Page | undefined {
    let low = 0
    let high = this.#pages.length - 1
    while (low <= high) {
      const middle = (low + high) >> 1
      const page = this.#pages[middle]
      if (page === undefined) return undefined
      if (at < page.start) high = middle - 1
      else if (at >= page.start + page.count) low = middle + 1
      else return page
    }
    return undefined
  }

  #renumber(): void {
    let start = 0
    for (const page of this.#pages) {
      page.start = start
      start += page.count
    }
  }

  #letGo(first: number): void {
    if (this.#pages.length <= PAGES_KEPT) return
    const centre = this.#pages.findIndex((page) => page.start + page.count > first)
    this.#pages.forEach((page, at) => {
      if (Math.abs(at - centre) > PAGES_KEPT / 2) page.rows = undefined
    })
  }
}
