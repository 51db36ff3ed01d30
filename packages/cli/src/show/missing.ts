import type { TaskView } from '@baton/client'
import { count } from './numbers.ts'

/** How many of the partitions that were expected do not exist; undefined where none is missing. */
export function missingText({ expectedPartitions, missingPartitions }: TaskView): string | undefined {
  if (expectedPartitions === null || !missingPartitions) return undefined
  return `${count(missingPartitions)} of ${count(expectedPartitions)} partitions`
}
