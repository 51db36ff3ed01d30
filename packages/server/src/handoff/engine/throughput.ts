import { MINUTES_KEPT_MILLIS, STEP_MILLIS, THROUGHPUT_LEVELS, throughputSteps } from '@baton/protocol'
import type { Disk, RowChanges } from '../disk.ts'
import type { StoredThroughput } from '../stored.ts'

// The throughput history of a task: what became done on each level, by minute and by hour. An entry holds the
// increments of one minute. The flush that deletes the entry adds them to the rows of the minute and its hour
// in the same transaction, so nothing is counted twice or lost, whichever node flushes it.

/** What became done on one level of a task in one transaction. */
export interface DoneWithin {
  readonly task: number
  /** Levels above THROUGHPUT_LEVELS are counted as THROUGHPUT_LEVELS. */
  readonly level: number
  /** Minutes since 1970. */
  readonly minute: number
  partitions: number
  records: number
}

export const doneWithin = (task: number, level: number, now: number): DoneWithin => ({
  task,
  level: Math.min(level, THROUGHPUT_LEVELS),
  minute: Math.floor(now / STEP_MILLIS.minute),
  partitions: 0,
  records: 0,
})

/** Stands for all tasks together in the history. The ids of tasks begin at 1. */
export const ALL_TASKS = 0

export function addThroughput(rowChanges: RowChanges['throughput'], added: readonly DoneWithin[]): void {
  for (const { task, level, minute, partitions, records } of added) {
    for (const step of throughputSteps) {
      const at = beginOf(minute * STEP_MILLIS.minute, STEP_MILLIS[step])
      add(rowChanges, { task, step, at, level, partitions, records })
      add(rowChanges, { task: ALL_TASKS, step, at, level: 0, partitions, records })
    }
  }
}

function add(rowChanges: RowChanges['throughput'], added: StoredThroughput): void {
  const key = `${added.task}:${added.step}:${added.at}:${added.level}`
  const row = rowChanges.get(key)
  if (row === undefined) rowChanges.set(key, added)
  else addTo(row, added.partitions, added.records)
}

/** With reruns, the sum of records may exceed the safe integer range. */
function addTo(row: StoredThroughput, partitions: number, records: number): void {
  row.partitions += partitions
  row.records = Math.min(row.records + records, Number.MAX_SAFE_INTEGER)
}

export const beginOf = (at: number, millis: number): number => Math.floor(at / millis) * millis

/** Rows per step, over all tasks. Beyond it, the oldest are deleted before their retention ends. */
const MOST_THROUGHPUT_ROWS = 250_000
const ROWS_PER_STEP = 500

/** Deletes old rows in bounded steps. Checks their age once a minute, and their number once an hour. */
export class ThroughputRetention {
  readonly #disk: Disk
  #seenMinute = -1
  #seenHour = -1

  constructor(disk: Disk) {
    this.#disk = disk
  }

  /** Returns true if there may be more to delete. */
  async maintain(now: number, retentionMillis: number): Promise<boolean> {
    const minute = Math.floor(now / STEP_MILLIS.minute)
    const hour = Math.floor(now / STEP_MILLIS.hour)
    if (minute === this.#seenMinute) return false
    const removed = await this.#disk.forgetThroughput({
      before: {
        minute: beginOf(now - MINUTES_KEPT_MILLIS, STEP_MILLIS.minute),
        hour: beginOf(now - retentionMillis, STEP_MILLIS.hour),
      },
      most: hour === this.#seenHour ? null : MOST_THROUGHPUT_ROWS,
      limit: ROWS_PER_STEP,
    })
    if (removed === ROWS_PER_STEP) return true
    this.#seenMinute = minute
    this.#seenHour = hour
    return false
  }
}
