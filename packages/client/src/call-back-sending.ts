import { rebased } from './call-back-check.ts'
import type { BatonClient } from './client.ts'
import type { SealableCallOptions } from './client-options.ts'
import { BatonError, type CallBackProgress, ProblemError, problemError } from './errors.ts'
import { jsonText } from './transport.ts'

/** Consecutive descriptors that are sent in one request. */
export interface Piece {
  /** The position of the first descriptor in the whole call-back. */
  readonly offset: number
  readonly descriptors: readonly unknown[]
  /** The descriptors as JSON, one text each. */
  readonly texts: readonly string[]
}

export interface PieceLimits {
  readonly descriptors: number
  readonly levels: number
  readonly bytes: number
}

/**
 * Splits the descriptors into pieces within all limits. A descriptor above the byte limit becomes a piece by
 * itself.
 */
export async function* piecesOf(
  source: Iterable<unknown> | AsyncIterable<unknown>,
  limits: PieceLimits,
): AsyncGenerator<Piece, void, undefined> {
  let offset = 0
  let bytes = 0
  let descriptors: unknown[] = []
  let texts: string[] = []
  const levels = new Set<unknown>()
  for await (const descriptor of source) {
    const text = jsonText(descriptor, `descriptor /${offset + texts.length}`)
    const size = byteLength(text) + 1
    const level = levelOf(descriptor)
    const isFull =
      texts.length >= limits.descriptors ||
      bytes + size > limits.bytes ||
      (levels.size >= limits.levels && !levels.has(level))
    if (texts.length > 0 && isFull) {
      yield { offset, descriptors, texts }
      offset += texts.length
      bytes = 0
      descriptors = []
      texts = []
      levels.clear()
    }
    levels.add(level)
    descriptors.push(descriptor)
    texts.push(text)
    bytes += size
  }
  if (texts.length > 0) yield { offset, descriptors, texts }
}

/** Splits a piece in two, for a service that accepts less than the configured limit. */
function halves({ offset, descriptors, texts }: Piece): readonly [Piece, Piece] {
  const middle = Math.ceil(texts.length / 2)
  return [
    { offset, descriptors: descriptors.slice(0, middle), texts: texts.slice(0, middle) },
    { offset: offset + middle, descriptors: descriptors.slice(middle), texts: texts.slice(middle) },
  ]
}

/** The value may be anything; the contract check rejects what is not a descriptor. */
function levelOf(descriptor: unknown): unknown {
  return (descriptor as { priorityLevel?: unknown } | null | undefined)?.priorityLevel
}

const encoder = new TextEncoder()

/** Most descriptors are plain ASCII, where the length is the size and no encoding is needed. */
function byteLength(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches the whole ASCII range
  return /^[\x00-\x7f]*$/.test(text) ? text.length : encoder.encode(text).byteLength
}

/** With `seal`, the last request of the call-back seals the task. */
export interface CallBackCallOptions extends SealableCallOptions {
  /** Called after each request of the call-back. */
  readonly onProgress?: ((progress: CallBackProgress) => void) | undefined
}

/** The result of a whole call-back. */
export interface CallBackReceipt {
  readonly taskId: string
  /** Partitions that were new. */
  readonly accepted: number
  /**
   * Partitions that the service already had, unchanged. Includes those of a repeated request whose answer was
   * lost.
   */
  readonly duplicates: number
  /** The number of requests that were sent. */
  readonly requests: number
}

/**
 * Sends the pieces of one call-back, one after the other, because their order is the order of the hand-off.
 */
export class CallBackSending {
  readonly #client: BatonClient
  readonly #options: CallBackCallOptions
  #taskId = ''
  #sent = 0
  #accepted = 0
  #duplicates = 0
  #requests = 0
  /** Learned from the service: a body with more descriptors is too large. */
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

  /** Whether the last piece must be sent with the seal. */
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

  /**
   * Converts an error for the caller: pointers refer to everything that the caller passed, and `stored` says
   * what the service has stored already.
   */
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
