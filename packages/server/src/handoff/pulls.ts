import type { Batcher } from './batcher.ts'
import { type Filter, FilterGroups, type Group, isUnfiltered, wantedOf } from './pull-filters.ts'
import { SetsByKey } from './sets-by-key.ts'
import {
  type BatchedPull,
  type NewlyReadyOf,
  type Pulled,
  type PullRequest,
  type PullResult,
  StoreUnavailable,
} from './store.ts'

type Note = (instance: string | null, result: PullResult) => void

interface PullStart {
  /** Counts notifications. A pull that found nothing at an earlier count must try again. */
  readonly wakeCount: number
  /** The time that it may wait is counted from here. */
  readonly at: number
}

/** Runs pulls, alone or with a settle: partitions are handed out immediately or as soon as some are ready. */
export class Pulls {
  readonly #batcher: Batcher
  readonly #note: Note
  readonly waiting: WaitingPulls
  #isClosed = false

  constructor(batcher: Batcher, note: Note, maxWaiting = MAX_WAITING_PULLS) {
    this.#batcher = batcher
    this.#note = note
    this.waiting = new WaitingPulls((batched) => this.#tryAgain(batched), maxWaiting)
  }

  async pull(request: PullRequest, signal: AbortSignal | undefined): Promise<Pulled> {
    if (this.#isClosed) return { ...NOTHING, waited: false }
    const { start } = this
    const answer = await this.#batcher.ask({ pull: request })
    return this.#answerOrWait(request, answer.pull, signal, start)
  }

  /** The pull that runs in the same transaction as a settle. */
  pullBeside(request: PullRequest | null): BatchedPull | undefined {
    return request === null || this.#isClosed ? undefined : request
  }

  /** A pull that was first tried with a settle, which is answered even if the store becomes unavailable. */
  async afterSettling(
    request: PullRequest,
    found: PullResult | undefined,
    signal: AbortSignal | undefined,
    start: PullStart,
  ): Promise<Pulled> {
    try {
      return await this.#answerOrWait(request, found, signal, start)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      return { ...NOTHING, waited: true }
    }
  }

  get start(): PullStart {
    return { wakeCount: this.waiting.wakeCount, at: performance.now() }
  }

  /** Stops handing out. Waiting pulls get an empty answer. */
  close(): void {
    this.#isClosed = true
    this.waiting.close()
  }

  async #tryAgain(batched: BatchedPull): Promise<PullResult> {
    if (this.#isClosed) return NOTHING
    const { pull } = await this.#batcher.ask({ pull: batched })
    return pull ?? NOTHING
  }

  /** Returns what the transaction found, or waits for partitions if the caller allows it. */
  #answerOrWait(
    request: PullRequest,
    found: PullResult = NOTHING,
    signal: AbortSignal | undefined,
    { wakeCount, at }: PullStart,
  ): Pulled | Promise<Pulled> {
    const { instance } = request
    // The first try may have taken long: after a doubt the engine reads the disk again.
    const waitMillis = request.waitMillis - (performance.now() - at)
    const noted = (result: PullResult, waited: boolean) => {
      this.#note(instance, result)
      return { ...result, waited }
    }
    const isAnswer = isAnswerOf(found) || waitMillis <= 0
    if (isAnswer || this.#isClosed || this.waiting.isFull) return noted(found, false)
    const waited = this.waiting.wait(request, waitMillis, signal, wakeCount)
    return waited.then((result) => noted(result, true))
  }
}

const NOTIFICATIONS_KEPT = 100

/** Recent notifications of ready partitions, for pulls that tried before them and are about to wait. */
class Notifications {
  /** Incremented whenever partitions become ready. */
  count = 0
  readonly #recent: (readonly NewlyReadyOf[] | null)[] = []

  note(newlyReadyOf: readonly NewlyReadyOf[] | null): void {
    this.count += 1
    this.#recent.push(newlyReadyOf)
    if (this.#recent.length > NOTIFICATIONS_KEPT) this.#recent.shift()
  }

  /** Whether partitions that match the filter may have become ready since this count. */
  mayHaveCome(filter: Filter, since: number): boolean {
    const missed = this.count - since
    if (missed <= 0) return false
    if (missed > this.#recent.length || isUnfiltered(filter)) return true
    return this.#recent.slice(-missed).some((newlyReadyOf) => wantedOf(filter, 1, newlyReadyOf) > 0)
  }
}

/** Bounds the memory and timers of waiting pulls. Further pulls are answered immediately. */
export const MAX_WAITING_PULLS = 20_000

/** Whether waiting would not help. Leases that end wake no pull. */
const isAnswerOf = ({ partitions, repeated, because }: PullResult): boolean =>
  partitions.length > 0 || repeated || because !== undefined

export const NOTHING: PullResult = { partitions: [], repeated: false }

interface Waiter {
  readonly pull: BatchedPull
  readonly answer: (result: PullResult) => void
  readonly fail: (error: unknown) => void
  /** A try is in progress. The pull keeps its place in the queue. */
  trying: boolean
  /** Its wait has ended or its client disconnected: a try in progress is the last. */
  over: boolean
  /** The pulls with the same filter, while it waits. */
  group?: Group<Waiter>
}

type TryPull = (pull: BatchedPull) => Promise<PullResult>

/**
 * Pulls that found nothing and wait, first come first served. When partitions become ready, only that many
 * pulls are woken, so that thousands may wait cheaply. Pulls with a filter are woken only for matching
 * partitions; pulls with the same filter form a group.
 */
export class WaitingPulls {
  readonly #tryPull: TryPull
  readonly #most: number
  readonly #waiting = new Set<Waiter>()
  readonly #groups = new FilterGroups<Waiter>()
  readonly #byKey = new SetsByKey<string, Waiter>()
  readonly #notifications = new Notifications()
  #closed = false

  constructor(tryPull: TryPull, most = MAX_WAITING_PULLS) {
    this.#tryPull = tryPull
    this.#most = most
  }

  /** Incremented whenever partitions become ready. A pull that found nothing before must try again. */
  get wakeCount(): number {
    return this.#notifications.count
  }

  get size(): number {
    return this.#waiting.size
  }

  get isFull(): boolean {
    return this.#waiting.size >= this.#most
  }

  /** `seenWakeCount` is the wake count at which the caller found nothing. */
  wait(
    pull: BatchedPull,
    millis: number,
    signal: AbortSignal | undefined,
    seenWakeCount: number,
  ): Promise<PullResult> {
    if (this.#closed || signal?.aborted) return Promise.resolve(NOTHING)
    return new Promise((resolve, reject) => {
      const endWith = <T>(deliver: (value: T) => void) => {
        return (value: T) => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', giveUp)
          this.#remove(waiter)
          deliver(value)
        }
      }
      const waiter: Waiter = {
        pull,
        answer: endWith(resolve),
        fail: endWith(reject),
        trying: false,
        over: false,
      }
      // A try in progress may still succeed: its leases go to the caller, which uses or undoes them.
      const giveUp = () => {
        waiter.over = true
        if (!waiter.trying) waiter.answer(NOTHING)
      }
      const timer = setTimeout(() => {
        waiter.over = true
        // A pull with the same key on another node may have got leases while this one waited.
        if (!waiter.trying && pull.key !== null) void this.#try(waiter)
        else if (!waiter.trying) waiter.answer(NOTHING)
      }, millis)
      signal?.addEventListener('abort', giveUp)
      this.#add(waiter)
      if (this.#notifications.mayHaveCome(pull, seenWakeCount)) void this.#try(waiter)
    })
  }

  /** Wakes pulls for this many ready partitions, by task and table if known. */
  wake(newlyReady: number, newlyReadyOf: readonly NewlyReadyOf[] | null = null): void {
    if (newlyReady <= 0) return
    this.#notifications.note(newlyReadyOf)
    // Each group separately: a partition may match several groups.
    for (const [{ members }, wanted] of this.#groups.wanting(newlyReady, newlyReadyOf)) {
      let left = wanted
      for (const waiter of members) {
        if (left <= 0) break
        if (waiter.trying) continue
        left -= 1
        void this.#try(waiter)
        // A pull with the same key is answered together with it, not when its own wait ends.
        for (const twin of this.#byKey.get(waiter.pull.key ?? '') ?? [])
          if (!twin.trying) void this.#try(twin)
      }
    }
  }

  /** Partitions may be ready without a notification. */
  wakeAll(): void {
    this.wake(this.size)
  }

  /** Tries the pulls of an instance again. They must not be woken instead of others when work becomes ready. */
  tryAgain(instanceId: string): void {
    this.#notifications.note(null)
    for (const waiter of this.#waiting)
      if (waiter.pull.instance === instanceId && !waiter.trying) void this.#try(waiter)
  }

  /** All waiting and later pulls get an empty answer. */
  close(): void {
    this.#closed = true
    for (const waiter of this.#waiting) if (!waiter.trying) waiter.answer(NOTHING)
  }

  async #try(waiter: Waiter): Promise<void> {
    waiter.trying = true
    const seenWakeCount = this.wakeCount
    try {
      const result = await this.#tryPull(waiter.pull)
      waiter.trying = false
      if (isAnswerOf(result) || waiter.over || this.#closed) waiter.answer(result)
      else if (this.#notifications.mayHaveCome(waiter.pull, seenWakeCount)) void this.#try(waiter)
    } catch (error) {
      waiter.fail(error)
    }
  }

  #add(waiter: Waiter): void {
    this.#waiting.add(waiter)
    waiter.group = this.#groups.add(waiter.pull, waiter)
    const { key } = waiter.pull
    if (key !== null) this.#byKey.add(key, waiter)
  }

  #remove(waiter: Waiter): void {
    this.#waiting.delete(waiter)
    if (waiter.group !== undefined) this.#groups.remove(waiter.group, waiter)
    const { key } = waiter.pull
    if (key !== null) this.#byKey.remove(key, waiter)
  }
}
