import { type AuditQuery, type AuditRecord, auditFields, type ForgetAudit } from '../../handoff/audit.ts'
import { Columns } from './columns.ts'
import type { Row, Statement } from './session/connection.ts'

export const auditColumns = new Columns<AuditRecord>(auditFields)

export const auditSchema = `
-- Who changed what.
CREATE TABLE baton.audit (
  ${auditColumns.declarations}
);
CREATE INDEX audit_of_task ON baton.audit (task_id, id) WHERE task_id IS NOT NULL;
CREATE INDEX audit_by_name ON baton.audit (name, id) WHERE name IS NOT NULL;
`

export const addAuditStatement = (records: readonly AuditRecord[]): Statement => ({
  text: `INSERT INTO baton.audit (${auditColumns.names.join(', ')})
    SELECT * FROM ${auditColumns.unnest('n')} ON CONFLICT DO NOTHING`,
  values: auditColumns.arrays(records),
})

export function auditStatement({ taskId, name, before, limit }: AuditQuery): Statement {
  const isOfTask = taskId === null ? '' : 'AND task_id = $3::text COLLATE "C"'
  const isByName = name === null ? '' : `AND name = $${taskId === null ? 3 : 4}::text COLLATE "C"`
  // The order names the columns of the index, so that it is used.
  const order = taskId !== null ? 'task_id DESC, id DESC' : name !== null ? 'name DESC, id DESC' : 'id DESC'
  return {
    text: `SELECT ${auditColumns.asJson('a')} AS record FROM baton.audit a
      WHERE id < $1 ${isOfTask} ${isByName} ORDER BY ${order} LIMIT $2`,
    values: [before, limit, ...[taskId, name].filter((value) => value !== null)],
  }
}

export const readAudit = (row: Row): AuditRecord => auditColumns.read(row['record'] as unknown[])

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
