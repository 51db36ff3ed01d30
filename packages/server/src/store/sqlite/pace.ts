import type { DatabaseSync } from 'node:sqlite'
import type { TaskEntry } from '../../handoff/rules/task-entry.ts'
import { PACE_SECONDS_KEPT } from '../../handoff/shown/eta.ts'

export type PaceRow = readonly [task: number, second: number, partitions: number, records: number]

interface Finished {
  partitions: number
  records: number
}

/** Counts what each task finishes per second: what its rate and the time left are read from. */
export class Pace {
  /** Of the running transaction. */
  readonly #finished = new Map<TaskEntry, Finished>()
  readonly #unwritten = new Map<string, PaceRow>()
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  count(task: TaskEntry, recordCount: number): void {
    const finished = this.#finished.get(task)
    if (finished === undefined) this.#finished.set(task, { partitions: 1, records: recordCount })
    else {
      finished.partitions += 1
      finished.records += recordCount
    }
  }

  close(now: number): PaceRow[] {
    const second = Math.floor(now / 1000)
    const rows: PaceRow[] = []
    for (const [{ id }, { partitions, records }] of this.#finished) {
      const key = `${id}/${second}`
      const [, , before, recordsBefore] = this.#unwritten.get(key) ?? [id, second, 0, 0]
      this.#unwritten.set(key, [id, second, before + partitions, recordsBefore + records])
      rows.push([id, second, partitions, records])
    }
    this.#finished.clear()
    return rows
  }

  write(): void {
    this.replay([...this.#unwritten.values()])
    this.#unwritten.clear()
  }

  replay(rows: readonly PaceRow[]): void {
    for (const row of rows) this.#sql.save.run(...row)
    for (const task of new Set(rows.map(([id]) => id))) this.#sql.forget.run(task, task, PACE_SECONDS_KEPT)
  }

  forget(): void {
    this.#finished.clear()
    this.#unwritten.clear()
  }
}

function prepare(db: DatabaseSync) {
  return {
    save: db.prepare(
      `INSERT INTO pace (task, second, partitions, records) VALUES (?, ?, ?, ?)
       ON CONFLICT (task, second) DO UPDATE SET
         partitions = partitions + excluded.partitions,
         records = min(records + excluded.records, ${Number.MAX_SAFE_INTEGER})`,
    ),
    forget: db.prepare(
      `DELETE FROM pace WHERE task = ? AND second <
         (SELECT second FROM pace WHERE task = ? ORDER BY second DESC LIMIT 1 OFFSET ?)`,
    ),
  }
}
