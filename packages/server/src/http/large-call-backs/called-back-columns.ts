import type { CalledBackPartition } from '@baton/protocol'

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
  readonly extraFields: ReadonlyMap<number, string>
}

const NUMBERS = 3

export function columnsOf(partitions: readonly CalledBackPartition[]): CalledBackColumns {
  const numbers = new Float64Array(partitions.length * NUMBERS)
  const tables = new Uint32Array(partitions.length)
  const places = new Map<string, number>()
  const spellings = new Map<number, string>()
  const extras = new Map<number, string>()
  let at = 0
  for (const { level, index, recordCount, computeTableName, spelling, extraFields } of partitions) {
    numbers[at * NUMBERS] = level
    numbers[at * NUMBERS + 1] = index
    numbers[at * NUMBERS + 2] = recordCount
    const place = places.get(computeTableName) ?? places.size
    places.set(computeTableName, place)
    tables[at] = place
    if (spelling !== null) spellings.set(at, spelling)
    if (extraFields != null) extras.set(at, extraFields)
    at += 1
  }
  return { numbers, tables, tableNames: [...places.keys()], spellings, extraFields: extras }
}

/** The buffers to transfer with a message. */
export function ownedBy({ numbers, tables }: CalledBackColumns): ArrayBuffer[] {
  return [numbers.buffer, tables.buffer]
}

export function addPartitions(
  { numbers, tables, tableNames, spellings, extraFields }: CalledBackColumns,
  to: CalledBackPartition[],
): void {
  for (let at = 0; at < tables.length; at += 1) {
    const partition: CalledBackPartition = {
      level: numbers[at * NUMBERS] as number,
      index: numbers[at * NUMBERS + 1] as number,
      recordCount: numbers[at * NUMBERS + 2] as number,
      computeTableName: tableNames[tables[at] as number] as string,
      spelling: spellings.get(at) ?? null,
    }
    const extra = extraFields.get(at)
    if (extra !== undefined) partition.extraFields = extra
    to.push(partition)
  }
}
