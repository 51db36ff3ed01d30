import type { CallBackOptions, PartitionDescriptor } from '@baton/protocol'
import { MAX_LEVELS_PER_CALL_BACK, type UnknownFields, ViolationList } from '@baton/protocol/core'
import { CallBackCheck, checkAgainstContract, rebased, violation } from './call-back-check.ts'
import { type BatonClient, clientOf, type ServiceAddress } from './client.ts'
import type { SealableCallOptions } from './client-options.ts'
import {
  BatonError,
  type CallBackProgress,
  ContractError,
  isTooLarge,
  ProblemError,
  problemError,
} from './errors.ts'
import { jsonText } from './transport.ts'

const DEFAULT_DESCRIPTORS_PER_REQUEST = 50_000
const DEFAULT_BYTES_PER_REQUEST = 8 * 2 ** 20
const DEFAULT_RETRY_FOR_SECONDS = 300

export interface ProducerOptions {
  /**
   * The most descriptors in one request. A longer call-back is split. One request is stored all or nothing,
   * so lower this only for a service that needs smaller requests.
   * @defaultValue `50000`
   */
  readonly descriptorsPerRequest?: number
  /**
   * The most bytes in one request. If the service rejects a body as too large, smaller requests are sent.
   * @defaultValue `8388608`
   */
  readonly bytesPerRequest?: number
  /**
   * How the local check handles fields beyond the contract. Must match the configuration of the service.
   * @defaultValue `'refuse'`
   */
  readonly unknownFields?: UnknownFields
  /**
   * How long each request is retried while the service is unavailable. A restart of the service should not
   * discard a computation that took hours.
   * @defaultValue `300`
   */
  readonly retryForSeconds?: number
}

/**
 * Calls back the partitions of a computed task. `Fields` are the fields of descriptors beyond the contract,
 * for a service that keeps them.
 */
export class Producer<Fields extends object = object> {
  readonly #client: BatonClient
  readonly #limits: PieceLimits
  readonly #check: CallBackOptions
  readonly #retryForSeconds: number

  constructor(service: ServiceAddress, options: ProducerOptions = {}) {
    this.#client = clientOf(service)
    this.#limits = {
      descriptors: options.descriptorsPerRequest ?? DEFAULT_DESCRIPTORS_PER_REQUEST,
      bytes: options.bytesPerRequest ?? DEFAULT_BYTES_PER_REQUEST,
      levels: MAX_LEVELS_PER_CALL_BACK,
    }
    this.#check = {
      tableField: this.#client.tableField.name,
      unknownFields: options.unknownFields ?? 'refuse',
    }
    this.#retryForSeconds = options.retryForSeconds ?? DEFAULT_RETRY_FOR_SECONDS
  }

  /**
   * Calls back partitions of one task, in ascending order of their level. Resolves when all of them are
   * durable.
   *
   * An array is checked as a whole before any of it is sent. An async iterable is checked and sent piece by
   * piece as it yields. In both cases the call may be repeated after any failure.
   *
   * @throws {@link ContractError} with a pointer to each descriptor that breaks the contract
   * @throws {@link ConflictError} with a pointer to each descriptor that contradicts an accepted one
   */
  async callBack(
    descriptors: Iterable<PartitionDescriptor & Fields> | AsyncIterable<PartitionDescriptor & Fields>,
    options: CallBackCallOptions = {},
  ): Promise<CallBackReceipt> {
    const sending = new CallBackSending(this.#client, { retryForSeconds: this.#retryForSeconds, ...options })
    if (!isSeries(descriptors)) throw await this.#noArray(descriptors)
    if (Symbol.asyncIterator in descriptors) await this.#sendAsItComes(descriptors, sending)
    else await this.#sendChecked(descriptors, sending)
    return sending.receipt
  }

  /** Uses the message of the contract check. */
  async #noArray(given: unknown): Promise<ContractError> {
    const checked = await checkAgainstContract(given, this.#check)
    const found = checked.ok ? new ViolationList().failure() : checked
    return new ContractError(await violation(found, 'this is not an array of descriptors'), 'client')
  }

  async #sendChecked(descriptors: Iterable<unknown>, sending: CallBackSending): Promise<void> {
    const { tableField } = this.#client
    const wire = Array.from(descriptors, (descriptor) => tableField.toWire(descriptor))
    const found = await new CallBackCheck(this.#check).take(wire)
    if (found !== undefined) throw new ContractError(found, 'client')
    await sendAll(piecesOf(wire, this.#limits), sending)
  }

  async #sendAsItComes(descriptors: AsyncIterable<unknown>, sending: CallBackSending): Promise<void> {
    const check = new CallBackCheck(this.#check)
    const hold = async (piece: readonly unknown[]) => {
      const found = await check.take(piece)
      if (found !== undefined) throw sending.interrupted(new ContractError(found, 'client'))
    }
    const pieces = piecesOf(this.#inWireForm(descriptors), this.#limits)
    await sendAll(pieces, sending, (piece) => hold(piece.descriptors))
    // The iterable was empty: report it with the message of the contract check.
    if (sending.isEmpty) await hold([])
  }

  async *#inWireForm(descriptors: AsyncIterable<unknown>) {
    for await (const descriptor of descriptors) yield this.#client.tableField.toWire(descriptor)
  }
}

/**
 * Sends the pieces one after the other. If the last request must seal the task, each piece is held until the
 * next one arrives, because only then is it known not to be the last.
 */
async function sendAll(
  pieces: AsyncIterable<Piece>,
  sending: CallBackSending,
  check: (piece: Piece) => Promise<void> = async () => undefined,
): Promise<void> {
  let held: Piece | undefined
  for await (const piece of pieces) {
    await check(piece)
    if (held !== undefined) await sending.send(held, false)
    held = sending.seals ? piece : undefined
    if (held === undefined) await sending.send(piece, false)
  }
  if (held !== undefined) await sending.send(held, true)
}

/** Excludes strings, which are iterable too. */
function isSeries(given: unknown): given is Iterable<unknown> | AsyncIterable<unknown> {
  return (
    typeof given === 'object' && given !== null && (Symbol.iterator in given || Symbol.asyncIterator in given)
  )
}

/** Consecutive descriptors that are sent in one request. */
interface Piece {
  /** The position of the first descriptor in the whole call-back. */
  readonly offset: number
  readonly descriptors: readonly unknown[]
  /** The descriptors as JSON, one text each. */
  readonly texts: readonly string[]
}

interface PieceLimits {
  readonly descriptors: number
  readonly levels: number
  readonly bytes: number
}

/**
 * Splits the descriptors into pieces within all limits. A descriptor above the byte limit becomes a piece by
 * itself.
 */
async function* piecesOf(
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
class CallBackSending {
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

function pointingIntoWhole(error: ProblemError, offset: number): ProblemError {
  return offset === 0 ? error : problemError(rebased(error.problem, offset), error.retryAfterSeconds)
}
