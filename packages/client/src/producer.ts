import type { CallBackOptions, PartitionDescriptor } from '@baton/protocol'
import { listedViolations, MAX_LEVELS_PER_CALL_BACK, problem, type UnknownFields } from '@baton/protocol/core'
import { CallBackCheck, checkAgainstContract } from './call-back-check.ts'
import {
  type CallBackCallOptions,
  type CallBackReceipt,
  CallBackSending,
  type Piece,
  type PieceLimits,
  piecesOf,
} from './call-back-sending.ts'
import { type BatonClient, clientOf, type ServiceAddress } from './client.ts'
import { ContractError } from './errors.ts'

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
    const errors = checked.ok ? {} : listedViolations(checked)
    return new ContractError(
      problem('contract_violation', 'this is no array of descriptors', errors),
      'client',
    )
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
