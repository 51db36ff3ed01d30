import type { PullOrder, ReadiedOf } from './store.ts'

/** What a pull may have. */
export type Filter = Pick<PullOrder, 'tables' | 'tasks'>

/** What became ready is remembered for so many times. */
const EVENTS_KEPT = 100

/** The same for pulls that may have the same. */
export const groupOf = ({ tables, tasks }: Filter): string =>
  tables === null && tasks === null ? '' : JSON.stringify([tables, tasks])

/** Of so many partitions that became ready, how many a pull may have; all of them where it is not known what they are. */
export function wantedOf(
  { tables, tasks }: Filter,
  readied: number,
  readiedOf: readonly ReadiedOf[] | null,
): number {
  if (readiedOf === null || (tables === null && tasks === null)) return readied
  let wanted = 0
  for (const [task, table, count] of readiedOf) {
    if (tasks !== null && !tasks.includes(task)) continue
    if (tables === null || table === null || tables.includes(table)) wanted += count
  }
  return wanted
}

/** What became ready lately, for pulls that looked before and are about to wait. */
export class Wishes {
  /** Goes up whenever something became ready. */
  epoch = 0
  readonly #events: (readonly ReadiedOf[] | null)[] = []

  note(readiedOf: readonly ReadiedOf[] | null): void {
    this.epoch += 1
    this.#events.push(readiedOf)
    if (this.#events.length > EVENTS_KEPT) this.#events.shift()
  }

  /** Whether something became ready since this epoch that the pull may have. */
  mayHaveCome(filter: Filter, since: number): boolean {
    const missed = this.epoch - since
    if (missed <= 0) return false
    if (missed > this.#events.length || groupOf(filter) === '') return true
    return this.#events.slice(-missed).some((readiedOf) => wantedOf(filter, 1, readiedOf) > 0)
  }
}
