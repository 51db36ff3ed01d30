import { historyBy } from './history.ts'
import { instancesBy } from './instances.ts'
import { outboxBy } from './outbox.ts'
import { knownBy, partitionReadsBy } from './partition-reads.ts'
import type { SqlTables } from './sql-tables.ts'
import type { Session } from './statements.ts'
import { taskReadsBy } from './task-reads.ts'
import { taskViewsBy } from './task-views.ts'

/** What both disks do by the same statements. */
export const allReadsBy = (session: Session, tables: SqlTables) => ({
  ...taskReadsBy(session, tables),
  ...partitionReadsBy(session, tables),
  ...knownBy(session, tables),
  ...taskViewsBy(session, tables),
  ...historyBy(session, tables),
  ...instancesBy(session, tables),
  outbox: outboxBy(session, tables),
})
