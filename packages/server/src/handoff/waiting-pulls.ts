import type { PreparedOf, PullOrder, PullResult } from './store.ts'

/** What a pull may have. */
type Filter = Pick<PullOrder, 'tables' | 'tasks'>

/** What became ready is remembered for so many times. */
const EVENTS_KEPT = 100

/** The same for pulls that may have the same. */
const groupOf = ({ tables, tasks }: Filter): string =>
  tables === null && tasks === null ? '' : JSON.stringify([tables, tasks])

/** Of so many partitions that became ready, how many a pull may have; all of them where it is not known what they are. */
function wantedOf(
  { tables, tasks }: Filter,
  readied: number,
  readiedOf: readonly PreparedOf[] | null,
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
class Wishes {
  /** Goes up whenever something became ready. */
  epoch = 0
  readonly #events: (readonly PreparedOf[] | null)[] = []

  note(readiedOf: readonly PreparedOf[] | null): void {
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

/** Each costs about a kilobyte and a timer. Pulls beyond this are answered at once. */
export const MAX_WAITING_PULLS = 20_000

export const NOTHING: PullResult = { partitions: [], repeated: false }

interface Waiter {
  readonly order: PullOrder
  readonly answer: (result: PullResult) => void
  readonly fail: (error: unknown) => void
  /** Trying again right now; keeps its place meanwhile. */
  trying: boolean
  /** Its time is up or its client is gone: a try under way is the last. */
  over: boolean
}

/** Waiting pulls with the same filter. */
interface Group {
  readonly filter: Filter
  readonly waiters: Set<Waiter>
}

type TryPull = (order: PullOrder) => Promise<PullResult>

/**
 * Pulls that found nothing and were asked to wait, first come first served. When partitions become
 * ready only as many are woken as there are partitions: ten thousand may wait at no cost. Of those that name tables or
 * tasks, only pulls that may have what became ready are woken; pulls with the same filter are one group.
 */
export class WaitingPulls {
  readonly #tryPull: TryPull
  readonly #most: number
  readonly #waiting = new Set<Waiter>()
  readonly #groups = new Map<string, Group>()
  readonly #byKey = new Map<string, Set<Waiter>>()
  readonly #wishes = new Wishes()
  #closed = false

  constructor(tryPull: TryPull, most = MAX_WAITING_PULLS) {
    this.#tryPull = tryPull
    this.#most = most
  }

  /** Goes up whenever something became ready. Whoever found nothing before must look again. */
  get epoch(): number {
    return this.#wishes.epoch
  }

  get size(): number {
    return this.#waiting.size
  }

  get isFull(): boolean {
    return this.#waiting.size >= this.#most
  }

  /** `seenEpoch` is the epoch at which the caller looked and found nothing. */
  wait(
    order: PullOrder,
    millis: number,
    signal: AbortSignal | undefined,
    seenEpoch: number,
  ): Promise<PullResult> {
    if (this.#closed || signal?.aborted) return Promise.resolve(NOTHING)
    return new Promise((resolve, reject) => {
      const settle = <T>(deliver: (value: T) => void) => {
        return (value: T) => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', giveUp)
          this.#remove(waiter)
          deliver(value)
        }
      }
      const waiter: Waiter = {
        order,
        answer: settle(resolve),
        fail: settle(reject),
        trying: false,
        over: false,
      }
      // A try under way may be about to succeed: its leases must reach whoever undoes or uses them.
      const giveUp = () => {
        waiter.over = true
        if (!waiter.trying) waiter.answer(NOTHING)
      }
      const timer = setTimeout(() => {
        waiter.over = true
        // A twin on another node may have been given leases for this key while this one waited.
        if (!waiter.trying && order.key !== null) void this.#try(waiter)
        else if (!waiter.trying) waiter.answer(NOTHING)
      }, millis)
      signal?.addEventListener('abort', giveUp)
      this.#add(waiter)
      if (this.#wishes.mayHaveCome(order, seenEpoch)) void this.#try(waiter)
    })
  }

  /** So many partitions became ready; of which tasks and tables, where that is known. */
  wake(readied: number, readiedOf: readonly PreparedOf[] | null = null): void {
    if (readied <= 0) return
    this.#wishes.note(readiedOf)
    for (const { filter, waiters } of this.#groups.values()) {
      // Each group by itself: what one may take, another may take instead.
      let left = wantedOf(filter, readied, readiedOf)
      for (const waiter of waiters) {
        if (left <= 0) break
        if (waiter.trying) continue
        left -= 1
        void this.#try(waiter)
        // The twin of a keyed pull is answered with it, not when its own wait ends.
        for (const twin of this.#byKey.get(waiter.order.key ?? '') ?? [])
          if (!twin.trying) void this.#try(twin)
      }
    }
  }

  /** Everyone is answered empty, and whoever comes later too. */
  close(): void {
    this.#closed = true
    for (const waiter of this.#waiting) if (!waiter.trying) waiter.answer(NOTHING)
  }

  async #try(waiter: Waiter): Promise<void> {
    waiter.trying = true
    const epoch = this.epoch
    try {
      const result = await this.#tryPull(waiter.order)
      waiter.trying = false
      if (result.partitions.length > 0 || result.repeated || waiter.over || this.#closed)
        waiter.answer(result)
      else if (this.#wishes.mayHaveCome(waiter.order, epoch)) void this.#try(waiter)
    } catch (error) {
      waiter.fail(error)
    }
  }

  #add(waiter: Waiter): void {
    this.#waiting.add(waiter)
    const name = groupOf(waiter.order)
    const group = this.#groups.get(name)
    if (group === undefined) this.#groups.set(name, { filter: waiter.order, waiters: new Set([waiter]) })
    else group.waiters.add(waiter)
    const { key } = waiter.order
    if (key === null) return
    const twins = this.#byKey.get(key)
    if (twins === undefined) this.#byKey.set(key, new Set([waiter]))
    else twins.add(waiter)
  }

  #remove(waiter: Waiter): void {
    this.#waiting.delete(waiter)
    const name = groupOf(waiter.order)
    const group = this.#groups.get(name)
    group?.waiters.delete(waiter)
    if (group?.waiters.size === 0) this.#groups.delete(name)
    const { key } = waiter.order
    const twins = key === null ? undefined : this.#byKey.get(key)
    if (key === null || twins === undefined) return
    twins.delete(waiter)
    if (twins.size === 0) this.#byKey.delete(key)
  }
}
