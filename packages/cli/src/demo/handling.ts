import { setTimeout as sleep } from 'node:timers/promises'
import { Failed, type Handler } from '@baton/client'
import { SLOW, SLOW_SECONDS, UNREADABLE } from './tasks.ts'

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

const REPORTED_EVERY_MILLIS = 2000

/** Pretends to read a partition's records from its compute table, with the configured speed and failures. */
export function pretendedLoad(temperament: Temperament): Handler {
  let begun = 0
  const isEvery = (every: number | undefined) => every !== undefined && begun % every === 0
  return async (partition, { signal, progress, checkpoint, saveCheckpoint }) => {
    begun += 1
    const { record_count: records, partition_name: name, computeTableName: table } = partition
    const [fails, loses, crashes] = [
      isEvery(temperament.failsEvery),
      isEvery(temperament.losesRecordsEvery),
      begun === temperament.crashesAfter,
    ]
    const reason = UNREADABLE.get(name)
    const seconds = name === SLOW ? SLOW_SECONDS : records / temperament.recordsPerSecond
    const whole = seconds * 1000
    // Goes on where another worker stopped.
    const before = (Number(checkpoint ?? 0) / Math.max(1, records)) * whole
    const millis = (whole - before) * (fails || crashes || reason !== undefined ? 0.333 : 1)
    const startedAt = Date.now() - before
    const reporting = setInterval(() => {
      const share = Math.min(1, (Date.now() - startedAt) / whole)
      const read = Math.floor(records * share)
      progress({ records: read })
      if (name === SLOW) saveCheckpoint(String(read)).catch(() => {})
    }, REPORTED_EVERY_MILLIS)
    await sleep(millis, undefined, { signal }).finally(() => clearInterval(reporting))
    if (crashes) process.exit(1)
    if (reason !== undefined) throw new Failed(reason)
    if (fails) throw new Failed(`${table} is locked by another transaction`)
    return { records: loses ? records - Math.ceil(records / 500) : records }
  }
}
