import type { TaskSummary } from '@baton/protocol'

interface Known {
  readonly task: TaskSummary
  /** When this version of the task was received or, for an answer, requested. */
  readonly at: number
}

/**
 * The tasks known from events and answers. For a task with an event since the request was sent, the event is
 * newer than the answer. For all other tasks, the answer is newer.
 */
export class KnownTasks {
  readonly #clock: () => number
  #known = new Map<string, Known>()
  /** The first call-back of the newest task at the last full load. */
  #newest = ''

  constructor(clock = () => performance.now()) {
    this.#clock = clock
  }

  /** The start time of a request, for `add` and `replace`. */
  begin(): number {
    return this.#clock()
  }

  /** Stores a task from an event. Returns the number of records that finished since its previous version. */
  update(task: TaskSummary): number {
    const done = this.#doneSince(task)
    this.#put(task, this.#clock())
    return done
  }

  add(tasks: readonly TaskSummary[], begun: number): void {
    for (const task of tasks) {
      const before = this.#known.get(task.taskId)
      if (before === undefined || before.at <= begun) this.#put(task, begun)
    }
  }

  /**
   * Replaces all tasks with those of an answer. A task that is not in the answer is dropped, unless an event
   * arrived since.
   */
  replace(tasks: readonly TaskSummary[], begun: number): void {
    this.#known = new Map([...this.#known].filter(([, { at }]) => at > begun))
    this.add(tasks, begun)
    for (const { firstCallBackAt } of tasks)
      if (firstCallBackAt > this.#newest) this.#newest = firstCallBackAt
  }

  knows(taskId: string): boolean {
    return this.#known.has(taskId)
  }

  /** Milliseconds since the last news of a task. */
  ageOf(taskId: string): number {
    return this.#clock() - (this.#known.get(taskId)?.at ?? 0)
  }

  all(): ReadonlyMap<string, TaskSummary> {
    return new Map([...this.#known].map(([taskId, { task }]) => [taskId, task]))
  }

  #put(task: TaskSummary, at: number): void {
    this.#known.set(task.taskId, { task, at })
  }

  /**
   * An unknown task is either new, or an old one that was not loaded. Only the records of a new one count.
   */
  #doneSince(task: TaskSummary): number {
    const before = this.#known.get(task.taskId)?.task
    if (before === undefined) return task.firstCallBackAt > this.#newest ? task.records.done : 0
    return before.generation === task.generation ? task.records.done - before.records.done : 0
  }
}
