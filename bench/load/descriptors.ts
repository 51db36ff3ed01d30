/** Partitions as a typical compute task calls them back: several levels, uneven record counts. */

const LEVELS = 4
let tasksMade = 0

/** Unique across all processes and rounds of a run: a repeated name would be answered as a duplicate. */
const RUN = `${process.pid.toString(36)}${Date.now().toString(36)}`

/** A task may be called back in several arrays; the indexes continue where the last array ended. */
export interface Task {
  id: string
  table: string
  /** If present, its partitions are of this many tables, whose names begin with `table`. */
  tables?: number
  nextIndex: number
}

const tableOf = ({ table, tables }: Task, index: number): string =>
  tables === undefined ? table : `${table}_${index % tables}`

export function newTask(): Task {
  const number = ++tasksMade
  return { id: `bench-${RUN}-${number}`, table: `bench.result_${number}`, nextIndex: 0 }
}

/**
 * The body of one call-back: `count` descriptors of the task by ascending level, as the protocol requires.
 */
export function callBackBody(count: number, task: Task = newTask(), levels = LEVELS): string {
  const parts: string[] = []
  for (let made = 0; made < count; made++) {
    const level = Math.floor((made * levels) / count)
    const index = task.nextIndex++
    parts.push(
      `{"taskId":"${task.id}","computeTableName":"${tableOf(task, index)}",` +
        `"partition_name":"${task.id}-${level}-${index}","record_count":${1_000 + ((index * 7_919) % 9_000)},` +
        `"priorityLevel":${level}}`,
    )
  }
  return `[${parts.join(',')}]`
}

const PER_TASK = 50_000

/** Larger arrays fill no faster and use more memory in the service. */
const PER_ARRAY = 5_000

/** The bodies of a backlog: tasks of up to 50,000 partitions, each called back in arrays of 5,000. */
export function* backlogBodies(partitions: number): Generator<string> {
  let task = newTask()
  for (let left = partitions; left > 0; left -= PER_ARRAY) {
    if (task.nextIndex >= PER_TASK) task = newTask()
    yield callBackBody(Math.min(PER_ARRAY, left), task)
  }
}

/**
 * The bodies that add a number of partitions to existing tasks, the same number to each, all on one level.
 */
export function* deepeningBodies(partitions: number, tasks: readonly Task[]): Generator<string> {
  const perArray = Math.min(PER_ARRAY, Math.ceil(partitions / tasks.length))
  for (let left = partitions, at = 0; left > 0; left -= perArray, at += 1) {
    const task = tasks[at % tasks.length]
    if (task) yield callBackBody(Math.min(perArray, left), task, 1)
  }
}
