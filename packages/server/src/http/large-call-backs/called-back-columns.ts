import { type CalledBackPartition, type OptionalField, optionalFields } from '@baton/protocol'

/**
 * Partitions in messages of the reader thread: columns of numbers, which are transferred without copying.
 * Receiving objects instead would block the event loop (bench scenario call-back-stall).
 */
export interface CalledBackColumns {
  /** Level, index and record count of each partition in turn. */
  readonly numbers: Float64Array<ArrayBuffer>
  /** The index into `tableNames` of each partition. */
  readonly tables: Uint32Array<ArrayBuffer>
  readonly tableNames: readonly string[]
  /** By position of the partition; only for partitions that have one. */
  readonly spellings: ReadonlyMap<number, string>
  readonly optional: readonly (readonly [at: number, field: OptionalField, text: string])[]
}

const NUMBERS = 3

export function columnsOf(partitions: readonly CalledBackPartition[]): CalledBackColumns {
  const numbers = new Float64Array(partitions.length * NUMBERS)
  const tables = new Uint32Array(partitions.length)
  const places = new Map<string, number>()
  const spellings = new Map<number, string>()
  const optional: [number, OptionalField, string][] = []
  let at = 0
  for (const partition of partitions) {
    const { level, index, recordCount, computeTableName, spelling } = partition
    numbers[at * NUMBERS] = level
    numbers[at * NUMBERS + 1] = index
    numbers[at * NUMBERS + 2] = recordCount
    const place = places.get(computeTableName) ?? places.size
    places.set(computeTableName, place)
    tables[at] = place
    if (spelling !== null) spellings.set(at, spelling)
    for (const field of optionalFields) {
      const text = partition[field]
      if (text != null) optional.push([at, field, text])
    }
    at += 1
  }
  return { numbers, tables, tableNames: [...places.keys()], spellings, optional }
}

/** The buffers to transfer with a message. */
export function ownedBy({ numbers, tables }: CalledBackColumns): ArrayBuffer[] {
  return [numbers.buffer, tables.buffer]
}

export function addPartitions(
  { numbers, tables, tableNames, spellings, optional }: CalledBackColumns,
  to: CalledBackPartition[],
): void {
  const first = to.length
  for (let at = 0; at < tables.length; at += 1) {
    to.push({
      level: numbers[at * NUMBERS] as number,
      index: numbers[at * NUMBERS + 1] as number,
      recordCount: numbers[at * NUMBERS + 2] as number,
      computeTableName: tableNames[tables[at] as number] as string,
      spelling: spellings.get(at) ?? null,
    })
  }
  for (const [at, field, text] of optional) (to[first + at] as CalledBackPartition)[field] = text
}
