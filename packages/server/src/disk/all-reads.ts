import { historyBy } from './history.ts'
import { instancesBy } from './instances.ts'
import { outboxBy } from './outbox.ts'
import { knownBy, partitionReadsBy } from './partition-reads.ts'
import type { SqlTables } from './sql-tables.ts'
import type { IndexedBy, Session } from './statements.ts'
import { taskReadsBy } from './task-reads.ts'
import { taskViewsBy } from './task-views.ts'

/** What both disks do by the same statements. */
export const allReadsBy = (session: Session, tables: SqlTables, by: IndexedBy) => ({
  ...taskReadsBy(session, tables, by.conditions),
  ...partitionReadsBy(session, tables, by),
  ...knownBy(session, tables),
  ...taskViewsBy(session, tables, by),
  ...historyBy(session, tables, by.conditions),
  ...instancesBy(session, tables, by.conditions),
  outbox: outboxBy(session, tables, by.conditions),
})
