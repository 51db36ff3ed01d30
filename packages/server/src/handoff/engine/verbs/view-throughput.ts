import { MAX_THROUGHPUT_POINTS, STEP_MILLIS, type ThroughputStep } from '@baton/protocol'
import type { Disk } from '../../disk.ts'
import { totalOf } from '../../rules/task-facts.ts'
import type { ThroughputQuery, ThroughputRecord } from '../../views/throughput.ts'
import { beginOf } from '../throughput.ts'

const DAY = 86_400_000

/** The default time range of a query. */
const USUAL_MILLIS: Readonly<Record<ThroughputStep, number>> = { minute: DAY, hour: 7 * DAY }

/**
 * Returns the newest points within the time range. If there are too many, incomplete steps are dropped, so
 * that every returned step has all its levels.
 */
export async function viewThroughput(
  disk: Disk,
  { taskId, step, from, to, byLevel }: ThroughputQuery,
  now: number,
): Promise<ThroughputRecord | null> {
  const { tasks } = await disk.load({ taskNames: [taskId] })
  const task = tasks.find((one) => one.taskId === taskId)
  if (task === undefined || totalOf(task.partitions) === 0) return null
  const end = to ?? now
  const begin = beginOf(from ?? end - USUAL_MILLIS[step], STEP_MILLIS[step])
  const limit = MAX_THROUGHPUT_POINTS + 1
  // Includes a step that begins now.
  const before = to ?? now + 1
  const found = await disk.throughput({ task: task.id, step, from: begin, to: before, byLevel, limit })
  const rows = found.toReversed()
  const cutAt = rows.length === limit ? rows[0]?.at : undefined
  const whole = cutAt === undefined ? rows : rows.filter(({ at }) => at > cutAt)
  const { owners } = task
  return {
    task: { taskId, owners },
    from: whole === rows ? begin : (whole[0]?.at ?? end),
    to: end,
    rows: whole,
  }
}
