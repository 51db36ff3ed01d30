import { setTimeout as sleep } from 'node:timers/promises'
import { Failed, type Handler } from '@baton/client'
import { UNREADABLE } from './tasks.ts'

export interface Temperament {
  /** The records per second that it processes. */
  readonly recordsPerSecond: number
  /** It fails one of this many partitions. */
  readonly failsEvery?: number
  /** It reports fewer records than declared for one of this many partitions. */
  readonly losesRecordsEvery?: number
  /** After this many partitions the whole process crashes in the middle of one. */
  readonly crashesAfter?: number
}

/** Pretends to read a partition's records from its compute table, with the configured speed and failures. */
export function pretendedLoad(temperament: Temperament): Handler {
  let begun = 0
  const isEvery = (every: number | undefined) => every !== undefined && begun % every === 0
  return async (partition, { signal }) => {
    begun += 1
    const { record_count: records, partition_name: name, computeTableName: table } = partition
    const [fails, loses, crashes] = [
      isEvery(temperament.failsEvery),
      isEvery(temperament.losesRecordsEvery),
      begun === temperament.crashesAfter,
    ]
    const millis = (records / temperament.recordsPerSecond) * 1000
    await sleep(fails || crashes || name === UNREADABLE ? millis / 3 : millis, undefined, { signal })
    if (crashes) process.exit(1)
    if (name === UNREADABLE) throw new Failed(`checksum of ${table} does not match: a block is damaged`)
    if (fails) throw new Failed(`${table} is locked by another transaction`)
    return { records: loses ? records - Math.ceil(records / 500) : records }
  }
}
