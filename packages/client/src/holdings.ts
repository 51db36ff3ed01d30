import type { PulledPartition } from '@baton/protocol'
import { MAX_BATCH } from '@baton/protocol/core'
import type { PullChoice } from './client-options.ts'
import { type LeaseLostError, WorkerStoppedError } from './errors.ts'
import type { HandOffLoop } from './hand-off-loop.ts'
import type { LeaseKeeper } from './lease-keeper.ts'
import { type HandlingOutcome, outcomeOfError, outcomeOfResult, settlementOf } from './outcome.ts'
import { checkCheckpoint } from './work-report.ts'
import type {
  Handler,
  HandlingContext,
  WorkerEventListener,
  WorkerOptions,
  WorkerSettings,
} from './worker-options.ts'

/** One partition that this worker holds, from the pull until its handler has ended. */
class Holding {
  readonly partition: PulledPartition
  readonly #keeper: LeaseKeeper
  readonly #controller = new AbortController()
  #lost: LeaseLostError | undefined
  /** The checkpoint that could not be sent before the lease was lost. */
  unsaved: string | null | undefined

  constructor(partition: PulledPartition, keeper: LeaseKeeper) {
    this.partition = partition
    this.#keeper = keeper
  }

  /** Set once the lease is lost. The result of the handler must then not count. */
  get lost(): LeaseLostError | undefined {
    return this.#lost
  }

  get isAborted(): boolean {
    return this.#controller.signal.aborted
  }

  get context(): HandlingContext {
    const { lease } = this.partition
    return {
      signal: this.#controller.signal,
      lease,
      attempt: lease?.attempt ?? 1,
      checkpoint: lease?.checkpoint ?? null,
      progress: (progress) => {
        if (lease !== null) this.#keeper.progress(lease.id, progress)
      },
      saveCheckpoint: async (checkpoint) => {
        checkCheckpoint(checkpoint)
        if (this.#lost !== undefined) throw this.#lost
        if (lease !== null) await this.#keeper.save(lease.id, checkpoint)
      },
    }
  }

  /** `checkpoint`: the one that the service does not know yet. */
  lose(error: LeaseLostError, checkpoint: string | null | undefined): void {
    this.#lost ??= error
    this.unsaved = checkpoint
    this.#controller.abort(error)
  }

  /** Aborts the handler although the lease is still valid: the time to finish is over. */
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

/** All partitions that a worker holds: waiting for a handler, being handled, or being settled. */
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
  /** Whether partitions are handed out under leases. Unknown until the first pull. */
  #underLeases = false

  constructor(options: HoldingsOptions) {
    this.#options = options
  }

  get running(): number {
    return this.#running.size
  }

  /** Partitions that were neither settled nor released. */
  get abandoned(): number {
    return this.#abandoned + this.#running.size + this.#waiting.length + this.#settling
  }

  get isEmpty(): boolean {
    return this.#running.size + this.#waiting.length + this.#settling === 0
  }

  /** How much may be pulled now. */
  capacity(): PullChoice | undefined {
    const { concurrency, prefetch, recordBudget } = this.#options.settings
    const inHand = this.#running.size + this.#waiting.length
    // A partition without a lease cannot be released, so it is not pulled before a handler is free.
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
      const holding = new Holding(partition, keeper)
      this.#waiting.push(holding)
      this.#records += partition.record_count
      if (partition.lease !== null) {
        keeper.keep(
          partition.lease,
          (error, checkpoint) => {
            holding.lose(error, checkpoint)
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

  /**
   * Accepts no more partitions, and releases those that were not started. Partitions without a lease are
   * still handled.
   */
  close(): void {
    this.#closed = true
    this.#giveBackWaiting()
  }

  /** Aborts the running handlers, because the time to finish is over. */
  interrupt(): void {
    this.#interrupted = true
    this.#giveBackWaiting()
    for (const holding of this.#running) holding.interrupt(new WorkerStoppedError())
  }

  /** Resolves when no partition is held and everything is settled. */
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
    this.#options.loop().advance()
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
    const dropped = keeper.drop(lease.id)
    // Null is a checkpoint that was cleared.
    const checkpoint = dropped === undefined ? holding.unsaved : dropped
    const outcome = holding.lost === undefined ? handled : afterLoss(holding)
    if (outcome === undefined) return
    const settlement = settlementOf(lease.id, outcome, checkpoint)
    this.#settling += 1
    try {
      const answer = await loop().settle(settlement, partition.traceparent)
      const { outcome: said, reason } = settlement
      if (answer.settled) {
        const { parked } = answer
        tell({ kind: 'settled', partition, outcome: said, parked, reason, millis })
      } else tell({ kind: 'refused', partition, outcome: said, ...answer.refusal })
    } catch {
      // The loop has ended, or has reported why it cannot continue.
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
    this.#options.loop().advance()
  }

  #noteEmptied(): void {
    if (this.isEmpty) for (const resolve of this.#emptied.splice(0)) resolve()
  }
}

/**
 * The outcome to send after a lease was lost. None if the service itself reported the loss. If the service
 * was unreachable, the partition is released; even if the handler finished, it must not be settled as done.
 */
function afterLoss({ lost }: Holding): HandlingOutcome | undefined {
  if (lost?.code !== 'lease_unrenewed') return undefined
  return { outcome: 'released', reason: 'the lease could not be renewed in time' }
}
