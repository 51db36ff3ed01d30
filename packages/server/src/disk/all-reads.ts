import { historyBy } from './history.ts'
import { instancesBy } from './instances.ts'
import { outboxBy } from './outbox.ts'
import { knownBy, partitionReadsBy, readsBy } from './reads.ts'
import { recountBy } from './recount.ts'
import type { Conditions, Session } from './statements.ts'
import type { Tables } from './tables.ts'
import { viewsBy } from './views.ts'

/** What both disks do by the same statements. */
export const allReadsBy = (session: Session, tables: Tables, where: Conditions) => ({
  ...readsBy(session, tables, where),
  ...partitionReadsBy(session, tables, where),
  ...knownBy(session, tables),
  ...viewsBy(session, tables, where),
  ...historyBy(session, tables, where),
  ...instancesBy(session, tables, where),
  ...recountBy(session, tables),
  outbox: outboxBy(session, tables, where),
})
