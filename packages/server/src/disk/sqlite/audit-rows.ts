import type { DatabaseSync } from 'node:sqlite'
import type { AuditQuery, AuditRecord, ForgetAudit } from '../../handoff/audit.ts'
import { arrayQuery, finder, LIMIT, sqlite } from './tables.ts'

/** Who changed what. */
export class AuditRows {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  read({ taskId, name, before, limit }: AuditQuery): AuditRecord[] {
    if (taskId !== null && name !== null) return this.#sql.ofBoth.all(taskId, name, before, limit)
    if (taskId !== null) return this.#sql.ofTask.all(taskId, before, limit)
    return name === null ? this.#sql.all.all(before, limit) : this.#sql.ofName.all(name, before, limit)
  }

  /** Must be called within a transaction. */
  forget({ before, most, limit }: ForgetAudit): number {
    const [beyond] = this.#sql.beyond.get(most) ?? [0]
    return Number(this.#sql.forget.run(limit, before, beyond).changes)
  }
}

function prepare(db: DatabaseSync) {
  const newest = (rest: string) => finder(db, sqlite.audit, `${rest} id < ? ORDER BY id DESC ${LIMIT}`)
  return {
    all: newest('WHERE'),
    ofTask: newest('INDEXED BY audit_of_task WHERE task_id = ? AND'),
    ofName: newest('INDEXED BY audit_by_name WHERE name = ? AND'),
    ofBoth: newest('INDEXED BY audit_of_task WHERE task_id = ? AND name = ? AND'),
    beyond: arrayQuery<[number]>(
      db,
      'SELECT id FROM audit WHERE id > 0 ORDER BY id DESC LIMIT 1 OFFSET ? + 0',
    ),
    forget: db.prepare(
      `DELETE FROM audit WHERE id IN
         (SELECT id FROM (SELECT id, at FROM audit WHERE id > 0 ORDER BY id ${LIMIT}) WHERE at < ? OR id <= ?)`,
    ),
  }
}
