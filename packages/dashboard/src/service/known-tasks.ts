import type { TaskSummary } from '@baton/protocol'

interface Known {
  readonly task: TaskSummary
  /** When it was told of. */
  readonly at: number
}

/**
 * Tasks as events and answers tell of them. An answer was on its way for a while: of what an event told meanwhile,
 * the event knows better; of everything else, the answer does.
 */
export class KnownTasks {
  readonly #clock: () => number
  #known = new Map<string, Known>()
  /** The first call-back of the newest task when everything was last read. */
  #newest = ''

  constructor(clock = () => performance.now()) {
    this.#clock = clock
  }

  /** When a request was begun, for `add` and `replace`. */
  ask(): number {
    return this.#clock()
  }

  /** A task as an event tells of it. Returns how many records were finished since it was last told of. */
  tell(task: TaskSummary): number {
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

  /** What the answer does not name, and no event has named since, is no longer as it was known here. */
  replace(tasks: readonly TaskSummary[], begun: number): void {
    this.#known = new Map([...this.#known].filter(([, { at }]) => at > begun))
    this.add(tasks, begun)
    for (const { firstCallBackAt } of tasks)
      if (firstCallBackAt > this.#newest) this.#newest = firstCallBackAt
  }

  knows(taskId: string): boolean {
    return this.#known.has(taskId)
  }

  /** For how long nothing was heard of a task, in milliseconds. */
  ageOf(taskId: string): number {
    return this.#clock() - (this.#known.get(taskId)?.at ?? 0)
  }

  all(): ReadonlyMap<string, TaskSummary> {
    return new Map([...this.#known].map(([taskId, { task }]) => [taskId, task]))
  }

  #put(task: TaskSummary, at: number): void {
    this.#known.set(task.taskId, { task, at })
  }

  /** A task that nobody heard of before is either new or one of the many old ones that were not read. */
  #doneSince(task: TaskSummary): number {
    const before = this.#known.get(task.taskId)?.task
    if (before === undefined) return task.firstCallBackAt > this.#newest ? task.records.done : 0
    return before.generation === task.generation ? task.records.done - before.records.done : 0
  }
}
