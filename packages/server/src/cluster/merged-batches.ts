import { type HandOffAnswers, type HandOffBatch, type Store, StoreUnavailable } from '../handoff/store.ts'
import { hasLargeCallBack } from './peer-messages.ts'

interface Queued {
  readonly batch: HandOffBatch
  readonly resolve: (answers: HandOffAnswers) => void
  readonly reject: (error: unknown) => void
}

/** So many requests share an entry at most. */
const MOST_REQUESTS = 500

/**
 * Batches of several nodes that wait for the same engine become one: an entry on the disk costs the same for all of them.
 * One that comes alone waits for nothing.
 */
export class MergedBatches {
  readonly #engine: Store
  #queue: Queued[] = []
  #isBusy = false

  constructor(engine: Store) {
    this.#engine = engine
  }

  handOff(batch: HandOffBatch): Promise<HandOffAnswers> {
    if (hasLargeCallBack(batch)) return this.#engine.handOff(batch)
    return new Promise((resolve, reject) => {
      this.#queue.push({ batch, resolve, reject })
      if (!this.#isBusy) void this.#work()
    })
  }

  async #work(): Promise<void> {
    this.#isBusy = true
    while (this.#queue.length > 0) await this.#run(this.#next())
    this.#isBusy = false
  }

  #next(): Queued[] {
    let requests = 0
    const end = this.#queue.findIndex(({ batch: { settles, renews, callBacks, pulls } }) => {
      requests += settles.length + renews.length + callBacks.length + pulls.length
      return requests >= MOST_REQUESTS
    })
    return this.#queue.splice(0, end === -1 ? this.#queue.length : end + 1)
  }

  async #run(queued: readonly Queued[]): Promise<void> {
    try {
      const answers = await this.#engine.handOff(merged(queued))
      if (queued.length === 1) queued[0]?.resolve(answers)
      else deal(queued, answers)
    } catch (error) {
      // One batch's data broke what all shared: alone, only its own fails.
      if (error instanceof StoreUnavailable || queued.length === 1)
        for (const { reject } of queued) reject(error)
      else for (const one of queued) await this.#run([one])
    }
  }
}

function merged(queued: readonly Queued[]): HandOffBatch {
  const [only] = queued
  if (only !== undefined && queued.length === 1) return only.batch
  const all = <Part extends keyof HandOffBatch>(part: Part) =>
    queued.flatMap(({ batch }) => batch[part] as HandOffBatch[Part][number][])
  return {
    settles: all('settles'),
    renews: all('renews'),
    undos: all('undos'),
    callBacks: all('callBacks'),
    pulls: all('pulls'),
  } as HandOffBatch
}

/** Answers come in the order in which `merged` laid the orders out; what became ready all are told of. */
function deal(queued: readonly Queued[], answers: HandOffAnswers): void {
  const dealt = { settles: 0, renews: 0, callBacks: 0, pulls: 0 }
  for (const { batch, resolve } of queued) {
    const { settles, renews, callBacks, pulls } = dealt
    dealt.settles += batch.settles.length
    dealt.renews += batch.renews.length
    dealt.callBacks += batch.callBacks.length
    dealt.pulls += batch.pulls.length
    resolve({
      ...answers,
      settles: answers.settles.slice(settles, dealt.settles),
      renews: answers.renews.slice(renews, dealt.renews),
      callBacks: answers.callBacks.slice(callBacks, dealt.callBacks),
      pulls: answers.pulls.slice(pulls, dealt.pulls),
    })
  }
}
