import { throughputSteps } from '@baton/protocol'
import type { Disk } from '../handoff/disk.ts'
import type { StoredThroughput } from '../handoff/stored.ts'
import type { ThroughputRow } from '../handoff/views/queries.ts'
import type { SqlTables } from './sql-tables.ts'
import { LIMIT, type Query, remove, rowsOf, type Session, select, writing } from './statements.ts'

/** What was done, by minute and hour, and who changed what; both are forgotten some rows at a time. */
export const historyBy = (session: Session, tables: SqlTables) =>
  ({ ...throughputBy(session, tables), ...auditBy(session, tables) }) satisfies Partial<Disk>

function throughputBy(session: Session, { throughput, dialect, where }: SqlTables) {
  const newest = 'ORDER BY task DESC, step DESC, at DESC'
  const points = (selected: string, rest: string): Query<ThroughputRow> => ({
    selected,
    from: `${throughput.path} ${where.throughputOfTask} ${rest} ${LIMIT}`,
    read: ([at, level, partitions, records]) => ({ at, level, partitions, records }) as ThroughputRow,
  })
  const byLevel = points('at, level, partitions, records', `${newest}, level DESC`)
  const summed = points(
    `at, NULL, sum(partitions), ${dialect.least}(sum(records), ${Number.MAX_SAFE_INTEGER})`,
    `GROUP BY task, step, at ${newest}`,
  )
  const keys = throughput.only('task', 'step', 'at', 'level')
  const old = select(rowsOf(keys), `WHERE step = ? AND at < ? ORDER BY at ${LIMIT}`)
  // Uses the index by age alone, which is read up to the newest row over the limit.
  const beyond: Query<number> = {
    selected: 'at',
    from: `${throughput.path} WHERE step = ? ORDER BY at DESC LIMIT 1 OFFSET ? + 0`,
    read: ([at]) => at as number,
  }
  return {
    throughput: ({ task, step, from, to, byLevel: isByLevel, limit }) =>
      session.all(isByLevel ? byLevel : summed, task, step, from, to, limit),
    async forgetThroughput({ before, most, limit }) {
      const gone: Pick<StoredThroughput, 'task' | 'step' | 'at' | 'level'>[] = []
      for (const step of throughputSteps) {
        const [newestGone = -1] = most === null ? [] : await session.all(beyond, step, most)
        gone.push(
          ...(await session.all(old, step, Math.max(before[step], newestGone + 1), limit - gone.length)),
        )
      }
      if (gone.length > 0) await session.write(writing(remove(keys), gone))
      return gone.length
    },
  } satisfies Partial<Disk>
}

function auditBy(session: Session, { audit, dialect }: SqlTables) {
  const { indexed } = dialect
  const records = rowsOf(audit)
  // The order names the columns of the index, so that PostgreSQL uses it.
  const all = select(records, `WHERE id < ? ORDER BY id DESC ${LIMIT}`)
  const ofTask = (and: string) =>
    select(
      records,
      `${indexed('audit_of_task')} WHERE task_id = ? ${and} AND id < ? ORDER BY task_id DESC, id DESC ${LIMIT}`,
    )
  const [ofAnyName, ofBoth] = [ofTask(''), ofTask('AND name = ?')]
  const byName = select(
    records,
    `${indexed('audit_by_name')} WHERE name = ? AND id < ? ORDER BY name DESC, id DESC ${LIMIT}`,
  )
  const times = audit.only('id', 'at')
  const oldest = select(rowsOf(times), `WHERE id > 0 ORDER BY id ${LIMIT}`)
  const beyond = select(rowsOf(times), 'WHERE id > 0 ORDER BY id DESC LIMIT 1 OFFSET ? + 0')
  return {
    audited({ taskId, name, before, limit }) {
      if (taskId !== null)
        return name === null
          ? session.all(ofAnyName, taskId, before, limit)
          : session.all(ofBoth, taskId, name, before, limit)
      return name === null ? session.all(all, before, limit) : session.all(byName, name, before, limit)
    },
    async forgetAudit({ before, most, limit }) {
      const [newestGone] = await session.all(beyond, most)
      const gone = (await session.all(oldest, limit)).filter(
        ({ id, at }) => at < before || id <= (newestGone?.id ?? 0),
      )
      if (gone.length > 0) await session.write(writing(remove(audit.only('id')), gone))
      return gone.length
    },
  } satisfies Partial<Disk>
}
