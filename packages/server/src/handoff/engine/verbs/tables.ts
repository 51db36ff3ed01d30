import { MAX_TABLE_TASKS } from '@baton/protocol'
import { NO_TABLE_SETTINGS } from '../../rules/policy.ts'
import type { TableChange, TableChanged } from '../../store.ts'
import { IDLE_MILLIS } from '../../views/eta.ts'
import type { Amount, Seen, TableDetails, TablePage, TableQuery } from '../../views/queries.ts'
import type { Table, Task } from '../state/memory-rows.ts'
import type { Tables } from '../state/tables.ts'
import type { Transaction } from '../transaction.ts'

/** Changes the settings of a compute table, also before it is first called back. Its leases go on. */
export function setTable(tx: Transaction, { table, by, ...change }: TableChange): TableChanged {
  const before = tx.memory.order.tables.get(table)?.settings ?? NO_TABLE_SETTINGS
  const settings = { ...before, ...change }
  const isNew = settings.maxLeases !== before.maxLeases || settings.paused !== before.paused
  if (isNew) {
    tx.setTable({ table, ...settings })
    tx.audit(by, { action: 'table-settings', target: table, changed: 1 })
  }
  return { settings, newlyReady: tx.newlyReady.count, newlyReadyOf: tx.newlyReady.kinds }
}

export function readTable(tables: Tables, name: string, now: number): TableDetails | null {
  const table = tables.get(name)
  return table === undefined || !tables.isShown(table) ? null : detailsOf(tables, table, now)
}

export function readTables(tables: Tables, { after, limit }: TableQuery, now: number): TablePage {
  const found = tables.page(after, limit + 1)
  const page = found.slice(0, limit)
  return {
    tables: page.map((table) => detailsOf(tables, table, now)),
    next: found.length > limit ? (page.at(-1)?.name ?? null) : null,
  }
}

function detailsOf({ askedAt: anyAskedAt }: Tables, table: Table, now: number): TableDetails {
  const { name, settings, leases, holders, waiting, pace, askedAt, lanesOf } = table
  return {
    table: name ?? '',
    settings,
    tasks: lanesOf.size,
    taskIds: firstOf(lanesOf.keys()),
    leases,
    workers: holders.size,
    waiting: { ...waiting },
    pace: pace === null ? null : perSecond(pace.seen(now)),
    lastAskedAt: Math.max(askedAt ?? 0, anyAskedAt ?? 0) || null,
  }
}

const perSecond = ({ partitions, records, seconds, idleMillis }: Seen): Amount | null =>
  idleMillis > IDLE_MILLIS ? null : { partitions: partitions / seconds, records: records / seconds }

function firstOf(tasks: Iterable<Task>): string[] {
  const names: string[] = []
  for (const { taskId } of tasks) {
    if (names.length === MAX_TABLE_TASKS) break
    names.push(taskId)
  }
  return names
}
