import type { PartitionRow } from '@baton/protocol'

export interface PageOfRows {
  readonly rows: readonly PartitionRow[]
  readonly next: string | null
}

interface Page {
  readonly cursor: string | null
  /** Where its first row stands in the whole list. */
  start: number
  count: number
  /** Given back when the page is far from what is looked at; its cursor brings it again. */
  rows: readonly PartitionRow[] | undefined
}

/** So many pages keep their rows; the others are a cursor and a number. */
const PAGES_KEPT = 30
/** A filter may find nothing in long stretches: so many empty pages are passed over in one go. */
const EMPTY_PAGES_PASSED = 50

/**
 * A list of any length, of which only what is looked at is in memory. The service gives pages by cursor, so the list
 * becomes longer as one scrolls; a page that was passed can be fetched again by the cursor that led to it.
 */
export class PartitionPages {
  readonly #fetch: (cursor: string | null) => Promise<PageOfRows>
  readonly #pages: Page[] = []
  #next: string | null | undefined
  #growing: Promise<void> | undefined

  constructor(fetch: (cursor: string | null) => Promise<PageOfRows>) {
    this.#fetch = fetch
  }

  /** Rows that are known to exist so far. */
  get length(): number {
    const last = this.#pages.at(-1)
    return last === undefined ? 0 : last.start + last.count
  }

  /** Whether the list may go on. */
  get hasMore(): boolean {
    return this.#next !== null
  }

  row(at: number): PartitionRow | undefined {
    const page = this.#pageAt(at)
    return page?.rows?.[at - page.start]
  }

  /** Appends the next page that has rows. */
  grow(): Promise<void> {
    this.#growing ??= this.#append().finally(() => {
      this.#growing = undefined
    })
    return this.#growing
  }

  /** Brings the rows from `first` to `last` up to date, and lets go of those far away. */
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

  /** Whether a row that is looked at has to be fetched again first. */
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
