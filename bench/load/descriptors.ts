/** Partitions as a compute task would call them back: one task, several levels, uneven record counts. */

const LEVELS = 4
let tasksMade = 0

/** Distinct over all processes and rounds of a run: a repeated name would be answered as a duplicate. */
const RUN = `${process.pid.toString(36)}${Date.now().toString(36)}`

export interface CallBackBody {
  taskId: string
  count: number
  body: string
}

/** One array of `count` descriptors of a new task, in ascending level as the interface asks. */
export function callBackBody(count: number, levels = LEVELS): CallBackBody {
  const taskId = `bench-${RUN}-${++tasksMade}`
  const parts: string[] = []
  for (let made = 0; made < count; made++) {
    const level = Math.floor((made * levels) / count)
    const records = 1_000 + ((made * 7_919) % 9_000)
    parts.push(
      `{"taskId":"${taskId}","computeTableName":"bench.result_${tasksMade}",` +
        `"partition_name":"${taskId}-${level}-${made}","record_count":${records},"priorityLevel":${level}}`,
    )
  }
  return { taskId, count, body: `[${parts.join(',')}]` }
}
