import { rebased } from './call-back-check.ts'
import { halves, type Piece } from './call-back-pieces.ts'
import type { SealableCallOptions } from './call-options.ts'
import type { BatonClient } from './client.ts'
import { BatonError, type CallBackProgress, ProblemError, problemError } from './errors.ts'

/** With `seal`, the last request of the call-back seals the task. */
export interface CallBackCallOptions extends SealableCallOptions {
  /** Told after each request of the call-back. */
  readonly onProgress?: ((progress: CallBackProgress) => void) | undefined
}

/** What became of a whole call-back. */
export interface CallBackReceipt {
  readonly taskId: string
  /** Partitions that were new. */
  readonly accepted: number
  /** Partitions that were known already, unchanged: also those of a request whose answer was lost. */
  readonly duplicates: number
  /** How many requests it took. */
  readonly requests: number
}

/** One call-back on its way: its pieces one after the other, since their order is the order of the hand-off. */
export class CallBackSending {
  readonly #client: BatonClient
  readonly #options: CallBackCallOptions
  #taskId = ''
  #sent = 0
  #accepted = 0
  #duplicates = 0
  #requests = 0
  /** As learned from the service: more descriptors than this are too large a body. */
  #mostAtOnce = Number.POSITIVE_INFINITY

  constructor(client: BatonClient, options: CallBackCallOptions) {
    this.#client = client
    this.#options = options
  }

  get isEmpty(): boolean {
    return this.#requests === 0
  }

  get receipt(): CallBackReceipt {
    return {
      taskId: this.#taskId,
      accepted: this.#accepted,
      duplicates: this.#duplicates,
      requests: this.#requests,
    }
  }

  /** Whether it matters which piece is the last. */
  get seals(): boolean {
    const { seal } = this.#options
    return seal !== undefined && seal !== false
  }

  async send(piece: Piece, isLast: boolean): Promise<void> {
    if (piece.texts.length > this.#mostAtOnce) {
      const [first, second] = halves(piece)
      await this.send(first, false)
      await this.send(second, isLast)
      return
    }
    try {
      const options = isLast ? this.#options : { ...this.#options, seal: undefined }
      const answer = await this.#client.callBackText(`[${piece.texts.join(',')}]`, options)
      this.#taskId = answer.taskId
      this.#accepted += answer.accepted
      this.#duplicates += answer.duplicates
      this.#sent += piece.texts.length
      this.#requests += 1
    } catch (error) {
      if (isTooLarge(error) && piece.texts.length > 1) {
        this.#mostAtOnce = Math.ceil(piece.texts.length / 2)
        return this.send(piece, isLast)
      }
      throw this.interrupted(error, piece.offset)
    }
    this.#options.onProgress?.(this.#progress)
  }

  /** The error as the caller should see it: pointing into what they passed, and saying what is stored already. */
  interrupted(error: unknown, offset = 0): unknown {
    if (!(error instanceof BatonError)) return error
    const whole = error instanceof ProblemError ? pointingIntoWhole(error, offset) : error
    whole.stored = this.#progress
    return whole
  }

  get #progress(): CallBackProgress {
    return { sent: this.#sent, accepted: this.#accepted, duplicates: this.#duplicates }
  }
}

function isTooLarge(error: unknown): boolean {
  return (error as { status?: unknown }).status === 413
}

function pointingIntoWhole(error: ProblemError, offset: number): ProblemError {
  return offset === 0 ? error : problemError(rebased(error.problem, offset), error.retryAfterSeconds)
}
