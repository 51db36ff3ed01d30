/** Partitions as a compute task would call them back: several levels, uneven record counts. */

const LEVELS = 4
let tasksMade = 0

/** Distinct over all processes and rounds of a run: a repeated name would be answered as a duplicate. */
const RUN = `${process.pid.toString(36)}${Date.now().toString(36)}`

/** A task may be called back in several arrays; the indexes go on where the last array ended. */
export interface Task {
  id: string
  table: string
  nextIndex: number
}

export function newTask(): Task {
  const number = ++tasksMade
  return { id: `bench-${RUN}-${number}`, table: `bench.result_${number}`, nextIndex: 0 }
}

/** The body of one call-back: `count` descriptors of the task in ascending level, as the interface asks. */
export function callBackBody(count: number, task: Task = newTask(), levels = LEVELS): string {
  const parts: string[] = []
  for (let made = 0; made < count; made++) {
    const level = Math.floor((made * levels) / count)
    const index = task.nextIndex++
    parts.push(
      `{"taskId":"${task.id}","computeTableName":"${task.table}",` +
        `"partition_name":"${task.id}-${level}-${index}","record_count":${1_000 + ((index * 7_919) % 9_000)},` +
        `"priorityLevel":${level}}`,
    )
  }
  return `[${parts.join(',')}]`
}

export const PER_TASK = 50_000

/** Larger arrays fill no faster (112,000 a second; 50,000 at once: 96,000) and cost the service memory. */
const PER_ARRAY = 5_000

/**
 * The bodies of a backlog: tasks of up to so many partitions, each called back in arrays of 5,000. `last`
 * always has the task of the last body, so that a caller can go on with it.
 */
export function* backlogBodies(
  partitions: number,
  perTask = PER_TASK,
  last: { task: Task } = { task: newTask() },
): Generator<string> {
  for (let left = partitions; left > 0; left -= PER_ARRAY) {
    if (last.task.nextIndex >= perTask) last.task = newTask()
    yield callBackBody(Math.min(PER_ARRAY, left), last.task)
  }
}
