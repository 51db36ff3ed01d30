import type { LeaseRef } from './lease-id.ts'
import {
  type BatchedCallBack,
  type BatchedPull,
  type BatchedRenew,
  type BatchedSettle,
  type CallBackResult,
  type HandOffAnswers,
  type HandOffBatch,
  type PullResult,
  type RenewResult,
  type SettleResult,
  type Store,
  type StoreRequest,
  StoreUnavailable,
} from './store.ts'
import { isDiskFull } from './store-health.ts'

interface Answer {
  readonly settle: SettleResult | undefined
  /** Leases of the whole batch whose partitions are parked. */
  readonly parked: readonly string[] | undefined
  readonly renew: RenewResult | undefined
  readonly callBack: CallBackResult | undefined
  readonly pull: PullResult | undefined
}

function sizeOf({ settle, renew, undo, callBack, pull }: StoreRequest): number {
  let size = 0
  if (settle !== undefined) size += settle.settlements.length
  if (renew !== undefined) size += renew.leases.length
  if (undo !== undefined) size += undo.length
  if (callBack !== undefined) size += callBack.callBack.partitions.length
  if (pull !== undefined) size += pull.batch
  return size
}

function batchOf(asked: readonly { readonly ask: StoreRequest }[]): HandOffBatch {
  const batch = {
    settles: [] as BatchedSettle[],
    renews: [] as BatchedRenew[],
    undos: [] as LeaseRef[],
    callBacks: [] as BatchedCallBack[],
    pulls: [] as BatchedPull[],
  }
  for (const { ask } of asked) {
    if (ask.settle !== undefined) batch.settles.push(ask.settle)
    if (ask.renew !== undefined) batch.renews.push(ask.renew)
    if (ask.undo !== undefined) batch.undos.push(...ask.undo)
    if (ask.callBack !== undefined) batch.callBacks.push(ask.callBack)
    if (ask.pull !== undefined) batch.pulls.push(ask.pull)
  }
  return batch
}

/** Answers are in the order in which `batchOf` arranged the requests. */
function answersOf(asked: readonly { readonly ask: StoreRequest }[], answers: HandOffAnswers): Answer[] {
  let [settles, renews, callBacks, pulls] = [0, 0, 0, 0]
  return asked.map(({ ask: { settle, renew, callBack, pull } }) => ({
    settle: settle === undefined ? undefined : answerAt(answers.settles, settles++),
    parked: answers.parked,
    renew: renew === undefined ? undefined : answerAt(answers.renews, renews++),
    callBack: callBack === undefined ? undefined : answerAt(answers.callBacks, callBacks++),
    pull: pull === undefined ? undefined : answerAt(answers.pulls, pulls++),
  }))
}

function answerAt<T>(answers: readonly T[], place: number): T {
  const answer = answers[place]
  if (answer === undefined) throw new Error('the store answered fewer requests than it was given')
  return answer
}

interface Pending {
  readonly ask: StoreRequest
  readonly size: number
  /** The traced HTTP request, if tracing is enabled. */
  readonly traced: unknown
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

interface BatcherCallbacks {
  committed(answers: HandOffAnswers): void
  failed(error: unknown, asks: readonly StoreRequest[]): void
}

/** Hooks for tracing requests. */
export interface BatchTracing {
  current(): unknown
  batch(requests: readonly unknown[], run: () => Promise<HandOffAnswers>): Promise<HandOffAnswers>
}

/** How long a batch waits for clients just answered: spinning would take CPU time from other nodes. */
const MAX_WAIT_MILLIS = 1

/** Requests share a batch up to this many partitions. A larger one would delay other requests. */
export const FULL_BATCH = 1000

/**
 * The queue in front of the store: lets concurrent requests share a transaction. While one batch is being
 * committed, the next is collected, so the number of requests per commit adapts to the load.
 */
export class Batcher {
  readonly #store: Store
  readonly #callbacks: BatcherCallbacks
  readonly #tracing: BatchTracing | undefined
  #queue: Pending[] = []
  #queueSize = 0
  #scheduled = false
  /** Set while a batch waits although the last iteration of the event loop added no request. */
  #waitTimer: NodeJS.Timeout | undefined
  #isCommitting = false
  /** The estimated number of concurrent requests: the last batch and the requests that arrived during it. */
  #expected = 0
  /** Requests of a flood, a few in each iteration, must not delay a batch further. */
  #sendBy = 0
  /** Until then, a batch waits although no request arrives. */
  #waitUntil = 0

  constructor(store: Store, callbacks: BatcherCallbacks, tracing?: BatchTracing) {
    this.#store = store
    this.#callbacks = callbacks
    this.#tracing = tracing
  }

  ask(ask: StoreRequest): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const size = sizeOf(ask)
      const pending = { ask, size, traced: this.#tracing?.current(), resolve, reject }
      if (this.#sendAlone(pending)) return
      this.#queue.push(pending)
      this.#queueSize += size
      if (this.#waitTimer !== undefined && this.#isEnough()) this.#goNow()
      this.#schedule()
    })
  }

  /** Waits for the end of the event loop's iteration, so that every request read in it is included. */
  #schedule(): void {
    if (this.#scheduled || this.#queue.length === 0 || this.#isCommitting) return
    this.#scheduled = true
    this.#sendBy = performance.now() + MAX_WAIT_MILLIS
    this.#endIteration(this.#queue.length)
  }

  /** Clients that were just answered send their next request now. Without them, a request is not delayed. */
  #endIteration(seen: number): void {
    setImmediate(() => {
      const now = performance.now()
      if (this.#isEnough() || now >= this.#sendBy) this.#go()
      else if (this.#queue.length > seen) this.#endIteration(this.#queue.length)
      else if (now < this.#waitUntil) this.#waitTimer = setTimeout(() => this.#go(), MAX_WAIT_MILLIS)
      else this.#go()
    })
  }

  #isEnough(): boolean {
    return this.#queue.length >= this.#expected || this.#queueSize >= FULL_BATCH
  }

  #go(): void {
    this.#waitTimer = undefined
    this.#scheduled = false
    this.#send()
  }

  /** All expected requests have arrived, so the timer is not needed. */
  #goNow(): void {
    clearTimeout(this.#waitTimer)
    this.#waitTimer = undefined
    setImmediate(() => this.#go())
  }

  #sendAlone(pending: Pending): boolean {
    const { callBack } = pending.ask
    if (callBack === undefined || !this.#store.runsAlone(callBack)) return false
    void this.#commit([pending], () => undefined)
    return true
  }

  #send(): void {
    while (this.#queue.length > 0 && !this.#isCommitting) {
      const batch = this.#nextBatch().filter((pending) => !this.#sendAlone(pending))
      if (batch.length === 0) continue
      this.#isCommitting = true
      const sentAt = performance.now()
      void this.#commit(batch, () => {
        this.#isCommitting = false
        this.#expectAfter(batch.length, performance.now() - sentAt)
        this.#schedule()
      })
    }
  }

  #expectAfter(answered: number, tookMillis: number): void {
    const waitShare = this.#store.cluster?.waitShare ?? 0
    this.#expected = answered + this.#queue.length
    this.#waitUntil = performance.now() + Math.min(tookMillis * waitShare, MAX_WAIT_MILLIS)
  }

  #nextBatch(): readonly Pending[] {
    let batch = this.#queue
    if (this.#queueSize <= FULL_BATCH) this.#queue = []
    else {
      let size = 0
      const end = batch.findIndex((pending) => {
        size += pending.size
        return size >= FULL_BATCH
      })
      batch = this.#queue.splice(0, end + 1)
    }
    for (const { size } of batch) this.#queueSize -= size
    return batch
  }

  /** `onFree` is called when the store can take another batch, before the answers are delivered. */
  async #commit(batch: readonly Pending[], onFree: () => void): Promise<void> {
    let answers: HandOffAnswers
    try {
      answers = await this.#runBatch(batch)
    } catch (error) {
      if (isDiskFull(error) && batch.some(hasNoCallBack) && !batch.every(hasNoCallBack)) {
        // A full disk refuses call-backs. Workers must still be able to renew and settle.
        this.#refuse(
          batch.filter((pending) => !hasNoCallBack(pending)),
          error,
        )
        await this.#commit(batch.filter(hasNoCallBack), onFree)
        return
      }
      if (error instanceof StoreUnavailable || batch.length === 1) {
        onFree()
        this.#refuse(batch, error)
        return
      }
      // One request failed the shared transaction. Run each request alone, so that only the faulty one fails.
      for (const pending of batch) await this.#commit([pending], () => undefined)
      onFree()
      return
    }
    onFree()
    try {
      this.#callbacks.committed(answers)
      answersOf(batch, answers).forEach((answer, at) => {
        batch[at]?.resolve(answer)
      })
    } catch (error) {
      // The batch is committed: even if the answers are faulty, running it again would lease twice.
      this.#refuse(batch, error)
    }
  }

  #runBatch(batch: readonly Pending[]): Promise<HandOffAnswers> {
    const run = () => this.#store.runBatch(batchOf(batch))
    if (this.#tracing === undefined) return run()
    return this.#tracing.batch(
      batch.map(({ traced }) => traced),
      run,
    )
  }

  #refuse(batch: readonly Pending[], error: unknown): void {
    this.#callbacks.failed(
      error,
      batch.map(({ ask }) => ask),
    )
    for (const { reject } of batch) reject(error)
  }
}

const hasNoCallBack = ({ ask }: Pending): boolean => ask.callBack === undefined
