import type { RowChanges } from '../handoff/disk.ts'
import { addTotalsTo, byName, seenInstance } from './instances.ts'
import type { SqlTables } from './sql-tables.ts'
import { insert, type RowStatement, remove, replace, update } from './statements.ts'

/** In SQL: an existing row stays as it is. */
const KEEP = 'ON CONFLICT DO NOTHING'

interface Flushed {
  readonly statement: RowStatement<object>
  readonly rowsOf: (rowChanges: RowChanges) => Iterable<object>
}

const flushed = <Row extends object>(
  statement: RowStatement<Row>,
  rowsOf: (rowChanges: RowChanges) => Iterable<Row>,
): Flushed => ({ statement: statement as unknown as RowStatement<object>, rowsOf })

/** What a flush writes, in this order. Ranges are merged, by statements of each disk. */
export const flushedBy = (tables: SqlTables): readonly Flushed[] => [
  flushed(replace(tables.tasks), ({ tasks }) => tasks.values()),
  flushed(replace(tables.lanes), ({ lanes }) => lanes.values()),
  flushed(replace(tables.levels), ({ levels }) => levels.values()),
  flushed(replace(tables.laneTables), ({ laneTables }) => laneTables.values()),
  flushed(update(tables.statuses), ({ partitions }) =>
    // Rows with neighbouring ids are on the same pages. A spread is several times faster if it comes first.
    written(partitions, (status, id) => ({ ...status, id })).sort((a, b) => a.id - b.id),
  ),
  flushed(remove(tables.partitions.only('id')), ({ partitions }) => removed(partitions, (id) => ({ id }))),
  flushed(replace(tables.checkpoints), ({ checkpoints }) =>
    written(checkpoints, (text, partition) => ({ partition, text })),
  ),
  flushed(remove(tables.checkpoints.only('partition')), ({ checkpoints }) =>
    removed(checkpoints, (partition) => ({ partition })),
  ),
  flushed(replace(tables.keys), ({ keys }) => written(keys, (key) => key)),
  flushed(remove(tables.keys.only('key')), ({ keys }) => removed(keys, (key) => ({ key }))),
  flushed(replace(tables.tableSettings), ({ tableSettings }) => written(tableSettings, (row) => row)),
  flushed(remove(tables.tableSettings.only('table')), ({ tableSettings }) =>
    removed(tableSettings, (table) => ({ table })),
  ),
  flushed(insert(tables.tables, KEEP), ({ tables: named }) =>
    [...named].flatMap(([task, names]) => [...names].map((name) => ({ task, name }))),
  ),
  flushed(replace(tables.produced), ({ produced }) => produced.values()),
  flushed(insert(tables.instances, KEEP), ({ instances }) =>
    [...instances.values()].map((seen) => seenInstance(seen)).sort(byName),
  ),
  flushed(insert(tables.instances, addTotalsTo(tables)), ({ totals }) =>
    [...totals.values()]
      .map((added) => seenInstance(added, added.totals, added.lostUnlessSeenSince))
      .sort(byName),
  ),
  flushed(update(tables.instances.only('instanceId', 'pausedAt')), ({ instances }) =>
    [...instances.values()].flatMap(({ instanceId, pausedAt }) =>
      pausedAt === undefined ? [] : [{ instanceId, pausedAt }],
    ),
  ),
  flushed(insert(tables.throughput, addThroughputTo(tables)), ({ throughput }) => throughput.values()),
  flushed(replace(tables.subscriptions), ({ outbox }) =>
    written(outbox.subscriptions, (body, id) => ({ id, body })),
  ),
  flushed(remove(tables.subscriptions.only('id')), ({ outbox }) =>
    removed(outbox.subscriptions, (id) => ({ id })),
  ),
  flushed(insert(tables.deliveries, KEEP), ({ outbox }) => outbox.deliveries),
  flushed(update(tables.deliveries.only('subscription', 'event', 'progress')), ({ outbox }) =>
    [...outbox.changes.values()].filter(({ progress }) => progress !== null),
  ),
  flushed(remove(tables.deliveries.only('subscription', 'event')), ({ outbox }) =>
    [...outbox.changes.values()].filter(({ progress }) => progress === null),
  ),
  flushed(insert(tables.audit, KEEP), ({ audit }) => audit),
]

function addThroughputTo({ dialect, throughput }: SqlTables): string {
  const sum = (column: string) => `throughput.${column} + excluded.${column}`
  return `ON CONFLICT (${throughput.key.join(', ')}) DO UPDATE SET partitions = ${sum('partitions')},
    records = ${dialect.least}(${sum('records')}, ${Number.MAX_SAFE_INTEGER})`
}

/** Of changes by key: rows of those that are not null. */
function written<Key, Change, Row>(
  changes: ReadonlyMap<Key, Change | null>,
  rowOf: (change: Change, key: Key) => Row,
): Row[] {
  const rows: Row[] = []
  for (const [key, change] of changes) if (change !== null) rows.push(rowOf(change, key))
  return rows
}

/** Of changes by key: keys of those that are null. */
function removed<Key, Change, Row>(
  changes: ReadonlyMap<Key, Change | null>,
  rowOf: (key: Key) => Row,
): Row[] {
  const rows: Row[] = []
  for (const [key, change] of changes) if (change === null) rows.push(rowOf(key))
  return rows
}
