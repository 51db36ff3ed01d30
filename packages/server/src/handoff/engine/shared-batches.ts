import type { Disk } from '../disk.ts'
import {
  type BatchedCallBack,
  type Batching,
  type CallBackResult,
  type HandOffAnswers,
  type HandOffBatch,
  isLargeCallBack,
  type PullResult,
  type RenewResult,
  type SettleResult,
  StoreUnavailable,
} from '../store.ts'
import { Readied } from './readied.ts'
import type { Runner } from './runner.ts'
import { concludeTasks, moveBarriers } from './task-updates.ts'
import type { Transaction } from './transaction.ts'
import { callBack } from './verbs/call-back.ts'
import type { Exclusively, LargeCallBacks } from './verbs/large-call-back.ts'
import { pull } from './verbs/pull.ts'
import { loadLeases, renew, settle, undo } from './verbs/settle.ts'

/**
 * Requests share a transaction up to this many partitions. Larger transactions would delay other requests.
 */
export const BATCHING: Batching = { atOnce: 1, full: 1000, fullAtOnce: 1 }

interface Gathered {
  readonly batch: HandOffBatch
  readonly resolve: (answers: HandOffAnswers) => void
  readonly reject: (error: unknown) => void
}

/** Runs batches of requests. Those that arrive together share a transaction. */
export class SharedBatches {
  readonly #disk: Disk
  readonly #runner: Runner
  readonly #largeCallBacks: LargeCallBacks
  readonly #exclusively: Exclusively
  readonly #gathered = new Set<Gathered>()

  constructor(disk: Disk, runner: Runner, largeCallBacks: LargeCallBacks, exclusively: Exclusively) {
    this.#disk = disk
    this.#runner = runner
    this.#largeCallBacks = largeCallBacks
    this.#exclusively = exclusively
  }

  async run(batch: HandOffBatch): Promise<HandOffAnswers> {
    const { callBacks } = batch
    if (callBacks.length === 0) return this.#handOff(batch)
    if (!this.#hasSpace()) {
      const answers = await this.#handOff({ ...batch, callBacks: [] })
      return { ...answers, callBacks: callBacks.map(() => ({ kind: 'store_full' })) }
    }
    const { largeCallBack } = this.#runner.limits
    const isLarge = (batched: BatchedCallBack) => isLargeCallBack(batched, largeCallBack)
    return callBacks.some(isLarge) ? this.#inParts(batch, isLarge) : this.#handOff(batch)
  }

  /**
   * Keeps the order of a single transaction: the requests before a large call-back, then that call-back, and
   * so on. Pulls run last.
   */
  async #inParts(
    batch: HandOffBatch,
    isLarge: (batched: BatchedCallBack) => boolean,
  ): Promise<HandOffAnswers> {
    const results: CallBackResult[] = []
    const readied = new Readied()
    let answers: HandOffAnswers | undefined
    let part: HandOffBatch = { ...batch, callBacks: [], pulls: [] }
    const run = async (following: HandOffBatch) => {
      const answered = await this.#handOff(part)
      answers ??= answered
      results.push(...answered.callBacks)
      readied.merge(answered.readied, answered.readiedOf)
      part = following
      return answered
    }
    for (const batched of batch.callBacks) {
      if (isLarge(batched)) {
        if (!isNothing(part)) await run(EMPTY)
        const stored = await this.#largeCallBacks.run(batched)
        results.push(stored.result)
        readied.merge(stored.readied, stored.readiedOf)
      } else part = { ...part, callBacks: [...part.callBacks, batched] }
    }
    part = { ...part, pulls: batch.pulls }
    const { pulls, nextDueInMillis } = await run(EMPTY)
    return {
      ...(answers ?? NOTHING),
      callBacks: results,
      pulls,
      readied: readied.count,
      readiedOf: readied.kinds,
      nextDueInMillis,
    }
  }

  /** If the disk cannot answer, memory is dropped and read from the disk again. */
  #hasSpace(): boolean {
    try {
      return this.#disk.hasSpace()
    } catch (error) {
      this.#runner.drop()
      throw error
    }
  }

  /** A task processes one call-back at a time: call-backs that follow a large one wait until it has ended. */
  async #handOff(batch: HandOffBatch): Promise<HandOffAnswers> {
    if (isNothing(batch)) return NOTHING
    while (this.#mustWait(batch)) await this.#largeCallBacks.whenEnded(batch.callBacks)
    return this.#shared(batch)
  }

  #mustWait({ callBacks }: HandOffBatch): boolean {
    return callBacks.some(({ callBack }) => this.#largeCallBacks.isRunning(callBack.taskId))
  }

  /**
   * Batches that arrive during a transaction share the next one: the first that runs takes all queued batches
   * with it.
   */
  #shared(batch: HandOffBatch): Promise<HandOffAnswers> {
    const { promise, resolve, reject } = Promise.withResolvers<HandOffAnswers>()
    const gathered = { batch, resolve, reject }
    this.#gathered.add(gathered)
    this.#exclusively(() => this.#runGathered()).catch((error: unknown) => {
      this.#gathered.delete(gathered)
      reject(error)
    })
    return promise
  }

  async #runGathered(): Promise<void> {
    const together: Gathered[] = []
    let size = 0
    for (const gathered of this.#gathered) {
      if (together.length > 0 && size >= BATCHING.full) break
      this.#gathered.delete(gathered)
      // A large call-back of its task that started in the meantime is behind it in the queue.
      together.push(gathered)
      size += sizeOf(gathered.batch)
    }
    if (together.length > 0) await this.#runTogether(together)
  }

  async #runTogether(together: readonly Gathered[]): Promise<void> {
    const batches = together.map(({ batch }) => batch)
    try {
      const answers = await this.#runner.transact(
        (tx) => runBatch(tx, batches),
        (results) =>
          !this.#runner.leadsForCertain ||
          !results.every((result, at) => mayAnswerWithoutEntry(batches[at] as HandOffBatch, result)),
      )
      for (const [at, { resolve }] of together.entries()) resolve(answers[at] as HandOffAnswers)
    } catch (error) {
      if (error instanceof StoreUnavailable || together.length === 1)
        for (const { reject } of together) reject(error)
      // One batch failed the shared transaction. Run each batch alone, so that only the faulty one fails.
      else for (const one of together) await this.#runTogether([one])
    }
  }
}

const EMPTY: HandOffBatch = { settles: [], renews: [], undos: [], callBacks: [], pulls: [] }

const NOTHING: HandOffAnswers = {
  settles: [],
  renews: [],
  undone: 0,
  callBacks: [],
  pulls: [],
  readied: 0,
  nextDueInMillis: null,
}

/**
 * Runs everything that arrived together, from this node and from others, in one transaction. Settles run
 * first and pulls last, so that pulls see the effects of the other requests.
 */
async function runBatch(tx: Transaction, batches: readonly HandOffBatch[]): Promise<HandOffAnswers[]> {
  const leases = [...leasesOf(batches)]
  if (leases.length > 0) await loadLeases(tx, leases)
  const settles = await runEach(batches, 'settles', (settled) => settle(tx, settled))
  const renews = await runEach(batches, 'renews', (renewed) => renew(tx, renewed))
  const undone = await runEach(batches, 'undos', (lease) => undo(tx, lease))
  const callBacks = await runEach(batches, 'callBacks', (calledBack) => callBack(tx, calledBack))
  await moveBarriers(tx)
  const pulls: PullResult[][] = []
  for (const batch of batches) pulls.push(await pull(tx, batch.pulls))
  await concludeTasks(tx)
  const nextDueInMillis = tx.earliestDueAt === null ? null : tx.earliestDueAt - tx.now
  return batches.map((_, at) => {
    const answers: HandOffAnswers = {
      settles: settles[at] as SettleResult[],
      renews: renews[at] as RenewResult[],
      undone: (undone[at] as boolean[]).filter((isUndone) => isUndone).length,
      callBacks: callBacks[at] as CallBackResult[],
      pulls: pulls[at] as PullResult[],
      // Reported once, with the first batch.
      readied: at === 0 ? tx.readied.count : 0,
      readiedOf: at === 0 ? tx.readied.kinds : [],
      nextDueInMillis,
    }
    return tx.parkedLeases.length === 0 ? answers : { ...answers, parked: tx.parkedLeases }
  })
}

/** Runs the requests of one verb, and returns their results by batch. */
async function runEach<Verb extends keyof HandOffBatch, Result>(
  batches: readonly HandOffBatch[],
  verb: Verb,
  run: (request: HandOffBatch[Verb][number]) => Promise<Result> | Result,
): Promise<Result[][]> {
  const results: Result[][] = []
  for (const { [verb]: requests } of batches) {
    const ofBatch: Result[] = []
    for (const request of requests) ofBatch.push(await run(request))
    results.push(ofBatch)
  }
  return results
}

/** The size of a batch, in partitions. */
function sizeOf({ settles, renews, undos, callBacks, pulls }: HandOffBatch): number {
  let size = undos.length
  for (const { settlements } of settles) size += settlements.length
  for (const { leases } of renews) size += leases.length
  for (const {
    callBack: { partitions },
  } of callBacks)
    size += partitions.length
  for (const { batch } of pulls) size += batch
  return size
}

const isNothing = ({ settles, renews, undos, callBacks, pulls }: HandOffBatch): boolean =>
  settles.length + renews.length + undos.length + callBacks.length + pulls.length === 0

/**
 * If the transaction changed nothing, a batch of pulls found nothing and needs no entry: a node that lost
 * leadership cannot return anything wrong with it. A repeated key needs one, because its leases are returned.
 */
const mayAnswerWithoutEntry = (batch: HandOffBatch, { pulls }: HandOffAnswers): boolean =>
  isNothing({ ...batch, pulls: [] }) && pulls.every(({ repeated }) => !repeated)

function* leasesOf(batches: readonly HandOffBatch[]) {
  for (const { settles, renews, undos } of batches) {
    for (const { settlements } of settles) for (const { lease } of settlements) yield lease
    for (const { leases } of renews) yield* leases
    yield* undos
  }
}
