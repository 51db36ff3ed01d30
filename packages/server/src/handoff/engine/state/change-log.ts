import type { ChangeQuery, ParkedNotice } from '../../views/queries.ts'

/** For watchers. In memory only: after a restart, they reload everything. */
const KEPT = 20_000

interface Changes {
  readonly next: string
  readonly missed: boolean
  readonly tasks: readonly number[]
  readonly parked: readonly ParkedNotice[]
}

/**
 * Recently committed changes, in order, with one entry per task. A task that changes again before it was read
 * keeps its position. So the log grows with the number of tasks, not with their rate of change, and busy
 * tasks are not delayed.
 */
export class ChangeLog {
  readonly #runId: string
  /** Position by task or notice, in ascending order. */
  readonly #entries = new Map<number | ParkedNotice, number>()
  /** Every position below this one was returned to a watcher. */
  #read = 0
  #end = 0
  /** Entries below this position were dropped. */
  #first = 0

  /** `runId` is random per process, so that positions from before a restart are recognized. */
  constructor(runId: string) {
    this.#runId = runId
  }

  add(tasks: Iterable<number>, parked: readonly ParkedNotice[]): void {
    for (const task of tasks) {
      const position = this.#entries.get(task)
      if (position !== undefined && position >= this.#read) continue
      if (position !== undefined) this.#entries.delete(task)
      this.#append(task)
    }
    for (const notice of parked) this.#append(notice)
  }

  page({ after, limit }: ChangeQuery): Changes {
    const from = after === null ? this.#end : this.#parse(after)
    if (from === undefined || from < this.#first || from > this.#end)
      return { next: this.#readUpTo(this.#end), missed: true, tasks: [], parked: [] }
    const tasks: number[] = []
    const parked: ParkedNotice[] = []
    let next = this.#end
    for (const [entry, position] of this.#entries) {
      if (position < from) continue
      if (tasks.length === limit || parked.length === limit) {
        next = position
        break
      }
      if (typeof entry === 'number') tasks.push(entry)
      else parked.push(entry)
    }
    return { next: this.#readUpTo(next), missed: false, tasks, parked }
  }

  #append(entry: number | ParkedNotice): void {
    this.#entries.set(entry, this.#end)
    this.#end += 1
    if (this.#entries.size <= KEPT) return
    for (const [oldest, position] of this.#entries) {
      this.#entries.delete(oldest)
      this.#first = position + 1
      break
    }
  }

  #readUpTo(position: number): string {
    this.#read = Math.max(this.#read, position)
    return `${this.#runId}-${position.toString(36)}`
  }

  #parse(position: string): number | undefined {
    const [runId, number = ''] = position.split('-')
    return runId === this.#runId ? Number.parseInt(number, 36) : undefined
  }
}
