import type { CallBackOptions, PartitionDescriptor } from '@baton/protocol'
import { listedViolations, MAX_LEVELS_PER_CALL_BACK, problem, type UnknownFields } from '@baton/protocol/core'
import { CallBackCheck } from './call-back-check.ts'
import {
  type CallBackCallOptions,
  type CallBackReceipt,
  CallBackSending,
  type Piece,
  type PieceLimits,
  piecesOf,
} from './call-back-sending.ts'
import { type BatonClient, clientOf, type ServiceAddress } from './client.ts'
import { heldAgainstContract } from './contract.ts'
import { ContractError } from './errors.ts'

const DEFAULT_DESCRIPTORS_PER_REQUEST = 50_000
const DEFAULT_BYTES_PER_REQUEST = 8 * 2 ** 20
const DEFAULT_RETRY_FOR_SECONDS = 300

export interface ProducerOptions {
  /**
   * The most descriptors in one request; a longer call-back is split. One request is stored all or nothing, so
   * lower it only for a service that needs smaller ones.
   * @defaultValue `50000`
   */
  readonly descriptorsPerRequest?: number
  /**
   * The most bytes in one request. A service that takes less says so, and is then sent smaller ones.
   * @defaultValue `8388608`
   */
  readonly bytesPerRequest?: number
  /**
   * What the local check says to fields that the contract does not know; as configured at the service.
   * @defaultValue `'refuse'`
   */
  readonly unknownFields?: UnknownFields
  /**
   * How long each request is repeated while the service is away. A computation that took hours should not be lost
   * to a restart of the service.
   * @defaultValue `300`
   */
  readonly retryForSeconds?: number
}

/**
 * Hands the partitions of a computed task over to the service. `Fields` is what descriptors have beyond the contract, for a
 * service that keeps it.
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
   * Calls partitions of one task back, in ascending order of their level. Resolves when all of them are durable.
   *
   * An array is checked as a whole before anything of it is sent. What comes from an async iterable is checked and
   * sent piece by piece while it comes. Either way the call may be repeated after any failure.
   *
   * @throws {@link ContractError} with a pointer to each descriptor that breaks the contract
   * @throws {@link ConflictError} with a pointer to each that contradicts what was accepted before
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

  /** In the words that the contract has for it. */
  async #noArray(given: unknown): Promise<ContractError> {
    const checked = await heldAgainstContract(given, this.#check)
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
    // Nothing came: the contract has words for that, too.
    if (sending.isEmpty) await hold([])
  }

  async *#inWireForm(descriptors: AsyncIterable<unknown>) {
    for await (const descriptor of descriptors) yield this.#client.tableField.toWire(descriptor)
  }
}

/** One after the other. Where the last one seals, each waits for the next: only then is it known not to be the last. */
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

/** A text can be iterated over, too, but has no descriptors. */
function isSeries(given: unknown): given is Iterable<unknown> | AsyncIterable<unknown> {
  return (
    typeof given === 'object' && given !== null && (Symbol.iterator in given || Symbol.asyncIterator in given)
  )
}
