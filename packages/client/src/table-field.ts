import type { PartitionDescriptor, PulledPartition } from '@baton/protocol'
import { DEFAULT_TABLE_FIELD } from '@baton/protocol/core'

type Fields = Record<string, unknown>

const PROGRAM_NAME = DEFAULT_TABLE_FIELD satisfies keyof PartitionDescriptor

/**
 * Translates the name of the table field. The wire may have its own name; inside a program it is always
 * `computeTableName`. All other fields pass through unchanged.
 */
export class TableField {
  readonly #name: string

  constructor(name: string = PROGRAM_NAME) {
    this.#name = name
  }

  get name(): string {
    return this.#name
  }

  /**
   * A descriptor that already has the wire name, or a value that is not a descriptor, is returned unchanged.
   */
  toWire(descriptor: unknown): unknown {
    if (this.#name === PROGRAM_NAME || !isRenamable(descriptor, PROGRAM_NAME, this.#name)) {
      return descriptor
    }
    return renamed(descriptor, PROGRAM_NAME, this.#name)
  }

  fromWire<T extends PartitionDescriptor>(received: T): T {
    if (Object.hasOwn(received, PROGRAM_NAME)) return received
    // A worker that was not configured with the name must not fail every partition because of it.
    const name = Object.hasOwn(received, this.#name) ? this.#name : unknownTextField(received)
    return name === undefined ? received : (renamed(received, name, PROGRAM_NAME) as T)
  }

  /**
   * A pulled partition as it was called back: without the fields that the service added, with the wire name
   * of the table field.
   */
  describe(partition: PartitionDescriptor & Partial<PulledPartition>): Fields {
    const { lease: _lease, traceparent: _traceparent, taskId, computeTableName, ...others } = partition
    return { taskId, [this.#name]: computeTableName, ...others }
  }
}

/** All other text fields that a partition can have on the wire. */
const otherTexts = new Set([
  'taskId',
  'partition_name',
  'state',
  'holder',
  'leaseExpiresAt',
  'readyAt',
  'lastReason',
  'calledBackAt',
  'settledAt',
  'leasedAt',
  'expiresAt',
  'startedAt',
  'endedAt',
  'outcome',
  'reason',
  'traceparent',
])

function unknownTextField(received: object): string | undefined {
  const candidates = Object.entries(received).filter(
    ([name, value]) => typeof value === 'string' && !otherTexts.has(name),
  )
  return candidates.length === 1 ? candidates[0]?.[0] : undefined
}

function isRenamable(value: unknown, from: string, to: string): value is Fields {
  return (
    typeof value === 'object' && value !== null && Object.hasOwn(value, from) && !Object.hasOwn(value, to)
  )
}

/** Keeps the position of the field, so that the order of fields is unchanged. */
function renamed(value: object, from: string, to: string): Fields {
  return Object.fromEntries(
    Object.entries(value).map(([name, content]) => [name === from ? to : name, content]),
  )
}
