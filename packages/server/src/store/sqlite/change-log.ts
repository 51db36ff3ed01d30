import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import type { ChangePage, ChangeQuery, ParkedNotice } from '../../handoff/shown/change.ts'
import { query } from './query.ts'
import { oneByOne, type Steps } from './steps.ts'
import type { TaskRows } from './task-rows.ts'

/** So many changes are remembered for those who follow; memory, not disk: a restart tells them to look anew. */
const KEPT = 20_000

/**
 * What was committed lately, in order, each task once. A task that changes again before it was read keeps its place:
 * so the log is as long as tasks are many, not as they are fast, and the fastest does not wait for ever behind others.
 */
export class ChangeLog {
  readonly #life = randomUUID().slice(0, 8)
  readonly #tasks: TaskRows
  readonly #sql: ReturnType<typeof prepare>
  /** Position by task or notice, in ascending order. */
  readonly #entries = new Map<number | ParkedNotice, number>()
  /** Every position below was given out to somebody who follows. */
  #read = 0
  #end = 0
  /** What stood below is forgotten. */
  #first = 0

  constructor(db: DatabaseSync, tasks: TaskRows) {
    this.#tasks = tasks
    this.#sql = prepare(db)
  }

  /** Read within the transaction: after its commit nothing may fail any more. */
  *notices(parked: readonly number[]): Steps<ParkedNotice[]> {
    const found: ParkedNotice[] = []
    yield* oneByOne(parked, (id) => {
      const notice = this.#sql.parked.get(id)
      if (notice !== undefined) found.push(notice)
    })
    return found
  }

  /** To be called when the commit has succeeded, never before. */
  note(tasks: readonly number[], parked: readonly ParkedNotice[]): void {
    for (const task of tasks) {
      const position = this.#entries.get(task)
      if (position !== undefined && position >= this.#read) continue
      if (position !== undefined) this.#entries.delete(task)
      this.#append(task)
    }
    for (const notice of parked) this.#append(notice)
  }

  page({ after, limit }: ChangeQuery, now: number): ChangePage {
    const from = after === null ? this.#end : this.#parse(after)
    if (from === undefined || from < this.#first || from > this.#end) {
      return { next: this.#readUpTo(this.#end), missed: true, now, tasks: [], parked: [] }
    }
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
    return {
      next: this.#readUpTo(next),
      missed: false,
      now,
      tasks: tasks.flatMap((id) => this.#tasks.byId(id) ?? []),
      parked,
    }
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
    return this.#format(position)
  }

  #format(position: number): string {
    return `${this.#life}-${position.toString(36)}`
  }

  #parse(position: string): number | undefined {
    const [life, number = ''] = position.split('-')
    return life === this.#life ? Number.parseInt(number, 36) : undefined
  }
}

function prepare(db: DatabaseSync) {
  return {
    parked: query<ParkedNotice>(
      db,
      `SELECT task.task_id AS taskId, p.level, p.idx AS "index", p.spelling, p.attempts, p.reason
       FROM partition p JOIN lane ON lane.id = p.lane JOIN task ON task.id = lane.task
       WHERE p.id = ? AND p.state = 'parked'`,
    ),
  }
}
