import type { TaskSummary } from '@baton/client'
import { styled } from '../terminal.ts'
import { percent } from './bar.ts'
import { count, duration, rounded } from './numbers.ts'
import { taskColours } from './state-colours.ts'
import { shown } from './table.ts'

/** Which tasks are other than they were at the last look. Their pace and time left change by themselves, and do not count. */
export class Changes {
  #seen = new Map<string, string>()

  since(tasks: readonly TaskSummary[]): TaskSummary[] {
    const now = new Map(tasks.map((task) => [task.taskId, lookOf(task)]))
    const changed = tasks.filter(({ taskId }) => this.#seen.get(taskId) !== now.get(taskId))
    this.#seen = now
    return changed
  }
}

function lookOf({ state, generation, sealed, expectedPartitions, partitions, records }: TaskSummary): string {
  return JSON.stringify([state, generation, sealed, expectedPartitions, partitions, records])
}

/** A task on one line, with the time: for logs. */
export function taskLine(task: TaskSummary, at: Date = new Date()): string {
  const { taskId, state, partitions, records, recordsPerSecond, etaSeconds } = task
  const whole = records.total > 0 ? records : partitions
  return [
    `${at.toTimeString().slice(0, 8)} ${shown(taskId)} ${styled(taskColours[state], state)}`,
    `${percent(whole.done, whole.total)} done`,
    `${count(partitions.done)} of ${count(partitions.total)} partitions`,
    ...(partitions.leased > 0 ? [`${count(partitions.leased)} leased`] : []),
    ...(partitions.delayed > 0 ? [`${count(partitions.delayed)} in back-off`] : []),
    ...(partitions.parked > 0 ? [`${count(partitions.parked)} parked`] : []),
    ...(recordsPerSecond === null ? [] : [`${rounded(recordsPerSecond)} records/s`]),
    ...(etaSeconds === null ? [] : [`about ${duration(etaSeconds)} left`]),
  ].join(', ')
}
