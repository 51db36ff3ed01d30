import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import type { ChangePage, ChangeQuery, ParkedNotice } from '../../handoff/change.ts'
import type { TaskRows } from './task-rows.ts'

/** So many changes are remembered for those who follow; memory, not disk: a restart tells them to look anew. */
const KEPT = 20_000

/** What was committed lately, in order. */
export class ChangeLog {
  readonly #life = randomUUID().slice(0, 8)
  readonly #tasks: TaskRows
  readonly #sql: ReturnType<typeof prepare>
  #entries: (number | ParkedNotice)[] = []
  /** The position of the first entry kept. */
  #first = 0

  constructor(db: DatabaseSync, tasks: TaskRows) {
    this.#tasks = tasks
    this.#sql = prepare(db)
  }

  /** Read within the transaction: after its commit nothing may fail any more. */
  notices(parked: readonly number[]): ParkedNotice[] {
    return parked.flatMap((id) => (this.#sql.parked.get(id) as unknown as ParkedNotice | undefined) ?? [])
  }

  /** To be called when the commit has succeeded, never before. */
  note(tasks: readonly number[], parked: readonly ParkedNotice[]): void {
    this.#entries.push(...tasks, ...parked)
    // Cut rarely and a lot at a time: cutting one by one would move the whole array at every commit.
    if (this.#entries.length <= 2 * KEPT) return
    this.#first += this.#entries.length - KEPT
    this.#entries = this.#entries.slice(-KEPT)
  }

  page({ after, limit }: ChangeQuery, now: number): ChangePage {
    const end = this.#first + this.#entries.length
    const from = after === null ? end : this.#parse(after)
    if (from === undefined || from < this.#first || from > end) {
      return { next: this.#format(end), missed: true, now, tasks: [], parked: [] }
    }
    const tasks = new Set<number>()
    const parked: ParkedNotice[] = []
    let position = from
    while (position < end && tasks.size < limit && parked.length < limit) {
      const entry = this.#entries[position - this.#first]
      if (typeof entry === 'number') tasks.add(entry)
      else if (entry !== undefined) parked.push(entry)
      position += 1
    }
    return {
      next: this.#format(position),
      missed: false,
      now,
      tasks: [...tasks].flatMap((id) => this.#tasks.byId(id) ?? []),
      parked,
    }
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
    parked: db.prepare(
      `SELECT task.task_id AS taskId, p.level, p.idx AS "index", p.spelling, p.attempts, p.reason
       FROM partition p JOIN lane ON lane.id = p.lane JOIN task ON task.id = lane.task
       WHERE p.id = ? AND p.state = 'parked'`,
    ),
  }
}
