import type { AuditQuery, AuditRecord, ForgetAudit } from '../../handoff/audit.ts'
import type { Row, Statement } from './session/connection.ts'
import { asJson, postgres } from './tables.ts'

export function auditStatement({ taskId, name, before, limit }: AuditQuery): Statement {
  const isOfTask = taskId === null ? '' : 'AND task_id = $3::text COLLATE "C"'
  const isByName = name === null ? '' : `AND name = $${taskId === null ? 3 : 4}::text COLLATE "C"`
  // The order names the columns of the index, so that it is used.
  const order = taskId !== null ? 'task_id DESC, id DESC' : name !== null ? 'name DESC, id DESC' : 'id DESC'
  return {
    text: `SELECT ${asJson(postgres.audit)} AS record FROM baton.audit
      WHERE id < $1 ${isOfTask} ${isByName} ORDER BY ${order} LIMIT $2`,
    values: [before, limit, ...[taskId, name].filter((value) => value !== null)],
  }
}

export const readAudit = (row: Row): AuditRecord => postgres.audit.read(row['record'] as unknown[])

export const forgetAuditStatement = ({ before, most, limit }: ForgetAudit): Statement => ({
  text: `WITH beyond AS MATERIALIZED (
      SELECT (SELECT id FROM baton.audit ORDER BY id DESC LIMIT 1 OFFSET $2::bigint) AS id),
    oldest AS MATERIALIZED (SELECT id, at FROM baton.audit ORDER BY id LIMIT $3),
    gone AS (
      DELETE FROM baton.audit a USING oldest o, beyond b
      WHERE a.id = o.id AND (o.at < $1 OR o.id <= b.id) RETURNING 1)
    SELECT count(*) AS gone FROM gone`,
  values: [before, most, limit],
})
