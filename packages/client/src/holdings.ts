import type { PulledPartition } from '@baton/protocol'
import { MAX_BATCH } from '@baton/protocol/core'
import type { PullChoice } from './call-options.ts'
import { type LeaseLostError, WorkerStoppedError } from './errors.ts'
import type { HandOffLoop } from './hand-off-loop.ts'
import type { LeaseKeeper } from './lease-keeper.ts'
import { type HandlingOutcome, outcomeOfError, outcomeOfResult, settlementOf } from './outcome.ts'
import type { WorkerEventListener } from './worker-events.ts'
import type { Handler, HandlingContext, WorkerOptions, WorkerSettings } from './worker-options.ts'

/** One partition in this worker's hands, from the pull until its handler has ended. */
class Holding {
  readonly partition: PulledPartition
  readonly #controller = new AbortController()
  #lost: LeaseLostError | undefined

  constructor(partition: PulledPartition) {
    this.partition = partition
  }

  /** Set once the lease is lost: from then on nothing that was done here may count. */
  get lost(): LeaseLostError | undefined {
    return this.#lost
  }

  get isAborted(): boolean {
    return this.#controller.signal.aborted
  }

  get context(): HandlingContext {
    const { lease } = this.partition
    return { signal: this.#controller.signal, lease, attempt: lease?.attempt ?? 1 }
  }

  lose(error: LeaseLostError): void {
    this.#lost ??= error
    this.#controller.abort(error)
  }

  /** The lease is still ours; only the time is over. */
  interrupt(error: WorkerStoppedError): void {
    this.#controller.abort(error)
  }
}

interface HoldingsOptions {
  readonly handler: Handler
  readonly around: WorkerOptions['around']
  readonly settings: WorkerSettings
  readonly keeper: LeaseKeeper
  readonly loop: () => HandOffLoop
  readonly tell: WorkerEventListener
}

/** Everything that is in a worker's hands: taken but not begun, being worked on, being settled. */
export class Holdings {
  readonly #options: HoldingsOptions
  readonly #waiting: Holding[] = []
  readonly #running = new Set<Holding>()
  readonly #emptied: (() => void)[] = []
  #records = 0
  #settling = 0
  #abandoned = 0
  #closed = false
  #interrupted = false
  /** Whether partitions come under leases, which nobody knows before the first has come. */
  #underLeases = false

  constructor(options: HoldingsOptions) {
    this.#options = options
  }

  get running(): number {
    return this.#running.size
  }

  /** Partitions that were neither settled nor given back. */
  get abandoned(): number {
    return this.#abandoned + this.#running.size + this.#waiting.length + this.#settling
  }

  get isEmpty(): boolean {
    return this.#running.size + this.#waiting.length + this.#settling === 0
  }

  /** How much may be pulled now. */
  room(): PullChoice | undefined {
    const { concurrency, prefetch, recordBudget } = this.#options.settings
    const inHand = this.#running.size + this.#waiting.length
    // What comes without a lease cannot be given back: until a hand is free, it is better left at the service.
    const free = concurrency + (this.#underLeases ? prefetch : 0) - inHand
    if (this.#closed || free <= 0) return undefined
    const batch = Math.min(free, MAX_BATCH)
    if (recordBudget === Number.POSITIVE_INFINITY) return { batch }
    const records = Math.floor(recordBudget - this.#records)
    if (records <= 0 && inHand > 0) return undefined
    return { batch, records: Math.max(records, 1) }
  }

  receive(partitions: readonly PulledPartition[]): void {
    const { keeper, tell } = this.#options
    tell({ kind: 'pulled', partitions })
    this.#underLeases = partitions.every(({ lease }) => lease !== null)
    for (const partition of partitions) {
      const holding = new Holding(partition)
      this.#waiting.push(holding)
      this.#records += partition.record_count
      if (partition.lease !== null) {
        keeper.keep(
          partition.lease,
          (error) => {
            holding.lose(error)
            tell({ kind: 'lost', partition, error })
            this.#forgetIfWaiting(holding)
          },
          partition.traceparent,
        )
      }
    }
    if (this.#closed) this.#giveBackWaiting()
    this.#begin()
  }

  /** Takes nothing more, and gives back what was not begun; what came without a lease is still worked on. */
  close(): void {
    this.#closed = true
    this.#giveBackWaiting()
  }

  /** Tells the handlers that their time is over. */
  interrupt(): void {
    this.#interrupted = true
    this.#giveBackWaiting()
    for (const holding of this.#running) holding.interrupt(new WorkerStoppedError())
  }

  /** Resolves when nothing is in hand and everything is settled. */
  emptied(): Promise<void> {
    return this.isEmpty ? Promise.resolve() : new Promise((resolve) => this.#emptied.push(resolve))
  }

  #begin(): void {
    while (this.#running.size < this.#options.settings.concurrency) {
      const holding = this.#waiting.shift()
      if (holding === undefined) return
      this.#running.add(holding)
      void this.#work(holding)
    }
  }

  async #work(holding: Holding): Promise<void> {
    const { tell } = this.#options
    const { partition } = holding
    tell({ kind: 'started', partition })
    const begun = performance.now()
    const outcome = await this.#handle(holding)
    const millis = performance.now() - begun
    this.#running.delete(holding)
    const settled = this.#settle(holding, outcome, millis)
    this.#begin()
    this.#options.loop().turn()
    await settled
    this.#noteEmptied()
  }

  async #handle(holding: Holding): Promise<HandlingOutcome> {
    const { handler, around, tell } = this.#options
    const { partition, context } = holding
    const handle = async () => handler(partition, context)
    try {
      return outcomeOfResult(await (around === undefined ? handle() : around(partition, handle)))
    } catch (error) {
      tell({ kind: 'threw', partition, error })
      return outcomeOfError(error, holding.isAborted)
    }
  }

  async #settle(holding: Holding, handled: HandlingOutcome, millis: number): Promise<void> {
    const { partition } = holding
    const { lease } = partition
    const { keeper, loop, tell } = this.#options
    this.#records -= partition.record_count
    if (lease === null) {
      const { outcome, reason } = settlementOf('', handled)
      tell({ kind: 'unreported', partition, outcome, reason, millis })
      return
    }
    keeper.drop(lease.id)
    const outcome = holding.lost === undefined ? handled : afterLoss(holding)
    if (outcome === undefined) return
    const settlement = settlementOf(lease.id, outcome)
    this.#settling += 1
    try {
      const answer = await loop().settle(settlement, partition.traceparent)
      const { outcome: said, reason } = settlement
      if (answer.settled) {
        const { parked } = answer
        tell({ kind: 'settled', partition, outcome: said, parked, reason, millis })
      } else tell({ kind: 'refused', partition, outcome: said, ...answer.refusal })
    } catch {
      // The loop has ended or reported why it cannot go on.
      this.#abandoned += 1
    }
    this.#settling -= 1
  }

  #giveBackWaiting(): void {
    for (const holding of this.#waiting.splice(0)) {
      if (holding.partition.lease === null && !this.#interrupted) {
        this.#waiting.push(holding)
        continue
      }
      const given = this.#settle(holding, { outcome: 'released', reason: 'the worker stopped' }, 0)
      void given.then(() => this.#noteEmptied())
    }
  }

  #forgetIfWaiting(holding: Holding): void {
    const at = this.#waiting.indexOf(holding)
    if (at === -1) return
    this.#waiting.splice(at, 1)
    this.#records -= holding.partition.record_count
    this.#options.loop().turn()
  }

  #noteEmptied(): void {
    if (this.isEmpty) for (const resolve of this.#emptied.splice(0)) resolve()
  }
}

/**
 * What is left to say once a lease was lost: nothing, where the service said so itself. Where it was silent, it
 * learns that the partition is free; whether the handler came to an end or not, it must not hear "done".
 */
function afterLoss({ lost }: Holding): HandlingOutcome | undefined {
  if (lost?.code !== 'lease_unrenewed') return undefined
  return { outcome: 'released', reason: 'the lease could not be renewed in time' }
}
