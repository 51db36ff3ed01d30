import { type InstanceRole, type InstanceTotals, MAX_PRODUCER_TASKS } from '@baton/protocol'
import type { Disk } from '../handoff/disk.ts'
import { copierOf } from '../handoff/fields.ts'
import type { Heartbeat } from '../handoff/heartbeats.ts'
import { addCapped, totalOf } from '../handoff/rules/task.ts'
import type { StoredTask } from '../handoff/stored.ts'
import type { StoredInstance } from '../handoff/table-fields.ts'
import {
  type InstanceRecord,
  noTotals,
  type ProducedTaskDetails,
  totalFields,
} from '../handoff/views/queries.ts'
import type { SqlTables } from './sql-tables.ts'
import {
  eachOf,
  insert,
  LIMIT,
  listIn,
  lookUp,
  type Query,
  type RowStatement,
  remove,
  rowsOf,
  type Session,
  select,
  writing,
} from './statements.ts'
import { ALL_PARTITIONS } from './task-reads.ts'

/** The row of an instance that may not have one yet. */
export const seenInstance = (
  { instanceId, role, at }: { readonly instanceId: string; readonly role: InstanceRole; readonly at: number },
  totals: InstanceTotals = noTotals(),
  lostUnlessSeenSince: number | null = null,
): StoredInstance => ({
  instanceId,
  role,
  firstSeenAt: at,
  lastSeenAt: at,
  version: null,
  startedAt: null,
  draining: false,
  load: null,
  ...totals,
  lostUnlessSeenSince,
  pausedAt: null,
})

/** Rows of instances are written in this order, so that concurrent transactions do not deadlock. */
export const byName = (a: StoredInstance, b: StoredInstance): number => (a.instanceId < b.instanceId ? -1 : 1)

/** One row for each instance: PostgreSQL cannot write a row twice in one statement. */
export function heartbeatRows(heartbeats: readonly Heartbeat[], now: number): StoredInstance[] {
  const rows = new Map<string, StoredInstance>()
  for (const { instanceId, role, pulls, seenMillisAgo, node } of heartbeats) {
    const before = rows.get(instanceId)
    rows.set(instanceId, {
      ...seenInstance({ instanceId, role, at: now }),
      pulls: addCapped(before?.pulls ?? 0, pulls),
      firstSeenAt: Math.min(now - seenMillisAgo.first, before?.firstSeenAt ?? Number.POSITIVE_INFINITY),
      lastSeenAt: Math.max(now - seenMillisAgo.last, before?.lastSeenAt ?? 0),
      ...node,
    })
  }
  return [...rows.values()].sort(byName)
}

const totalsOf: (row: StoredInstance) => InstanceTotals = copierOf(totalFields)

/** In SQL: adds totals to the stored ones. When an instance was last seen comes from heartbeats. */
export const addTotalsTo = (tables: SqlTables): string =>
  `ON CONFLICT (instance_id) DO UPDATE SET
    ${tables.instances
      .only(...totalFields)
      .names.map((name) => `${name} = ${added(tables, name)}`)
      .join(', ')},
    lost_unless_seen_since = CASE WHEN excluded.lost_unless_seen_since > coalesce(instance.lost_unless_seen_since, 0)
      THEN excluded.lost_unless_seen_since ELSE instance.lost_unless_seen_since END`

const added = ({ dialect }: SqlTables, name: string): string =>
  `${dialect.least}(instance.${name} + excluded.${name}, ${Number.MAX_SAFE_INTEGER})`

/** In SQL: a client uses the name of a known node. Its totals are added; the node's record stays as it is. */
const TAKES_A_NODES_NAME = 'excluded.started_at IS NULL AND instance.started_at IS NOT NULL'

/**
 * Records a heartbeat; in SQL, `now` is the parameter with the time. Another node may have seen the instance
 * later and written so earlier. A time in the future, from before the clock was set back, does not count.
 */
export function recordHeartbeat(tables: SqlTables, now: string): RowStatement<StoredInstance> {
  const { least, greatest } = tables.dialect
  const unlessTaken = (column: string, value: string) =>
    `${column} = CASE WHEN ${TAKES_A_NODES_NAME} THEN instance.${column} ELSE ${value} END`
  const identity = ['role', 'version', 'started_at', 'draining', 'load']
  const onConflict = `ON CONFLICT (instance_id) DO UPDATE SET
    ${unlessTaken('last_seen_at', `${greatest}(excluded.last_seen_at, ${least}(instance.last_seen_at, ${now}))`)},
    ${identity.map((column) => unlessTaken(column, `excluded.${column}`)).join(', ')},
    pulls = ${added(tables, 'pulls')}`
  return insert(tables.instances, onConflict)
}

function instanceRecord(row: StoredInstance): InstanceRecord {
  const { instanceId, role, firstSeenAt, lastSeenAt, lostUnlessSeenSince, pausedAt } = row
  const { version, startedAt, draining, load } = row
  const node = startedAt === null ? null : { version: version ?? '', startedAt, draining, load }
  const seen = { instanceId, role, firstSeenAt, lastSeenAt, lostUnlessSeenSince, pausedAt }
  return { ...seen, totals: totalsOf(row), node }
}

const producedTask = (
  { taskId, state, owners, partitions, records }: StoredTask,
  lastCallBackAt: number,
): ProducedTaskDetails => ({
  taskId,
  state,
  owners,
  lastCallBackAt,
  partitions: { total: totalOf(partitions), done: partitions.done },
  records: { total: totalOf(records), done: records.done },
})

/** A client that holds a lease or is paused is kept, however long it has been silent. */
export function instancesBy(session: Session, tables: SqlTables) {
  const rows = rowsOf(tables.instances)
  const byNames = lookUp(rows, 'instance_id')
  const one = lookUp(withTasks(tables), 'instance_id')
  const next = select(rows, `WHERE instance_id > ? ORDER BY instance_id ${LIMIT}`)
  // On PostgreSQL without an index: it would have to be written with every heartbeat.
  const lastSeen = select(
    rows,
    `WHERE (last_seen_at, instance_id) < (?, ?) ORDER BY last_seen_at DESC, instance_id DESC ${LIMIT}`,
  )
  const paused = select(rows, 'WHERE paused_at IS NOT NULL')
  const names = tables.instances.only('instanceId', 'lastSeenAt')
  const beyond = select(
    rowsOf(names),
    'WHERE last_seen_at > 0 ORDER BY last_seen_at DESC LIMIT 1 OFFSET ? + 0',
  )
  const unseen = select(rowsOf(names), `WHERE last_seen_at < ? AND paused_at IS NULL ${LIMIT}`)
  const ended = select(
    rowsOf(names),
    `${tables.where.endedInstances} AND last_seen_at < ? AND paused_at IS NULL ${LIMIT}`,
  )
  const active = activeNames(tables)
  return {
    instance: async (instanceId) => (await session.all(one, instanceId))[0] ?? null,
    async instances(query) {
      if ('names' in query) return (await eachOf(session, byNames, query.names)).map(instanceRecord)
      const { sort, after, limit } = query
      const found =
        sort === 'name'
          ? session.all(next, after?.name ?? '', limit)
          : session.all(lastSeen, after?.value ?? Number.MAX_SAFE_INTEGER, after?.name ?? '', limit)
      return (await found).map(instanceRecord)
    },
    pausedInstances: async () =>
      (await session.all(paused)).map(({ instanceId, pausedAt }) => ({
        instanceId,
        pausedAt: pausedAt ?? 0,
      })),
    activeInstances: (since, limit) => session.all(active, since, limit),
    async forgetInstances({ unseenSince, endedSince, holders, most, limit }) {
      const [newestGone] = await session.all(beyond, most)
      const until = Math.max(unseenSince, (newestGone?.lastSeenAt ?? -1) + 1)
      const found = [
        ...(await session.all(unseen, until, limit + holders.size)),
        ...(await session.all(ended, endedSince, limit)),
      ].filter(({ instanceId }) => !holders.has(instanceId))
      const gone = [...new Map(found.map((row) => [row.instanceId, row])).values()].slice(0, limit)
      // One that was heard of in the meantime stays.
      if (gone.length > 0)
        await session.write(
          writing(remove(names), gone),
          writing(
            remove(tables.produced.only('instance')),
            gone.map(({ instanceId }) => ({ instance: instanceId })),
          ),
        )
      return gone.length
    },
  } satisfies Partial<Disk>
}

/** An instance with the tasks that it called back. One whose first call-back is not complete is not visible. */
function withTasks({ instances, produced, tasks, dialect }: SqlTables): Query<InstanceRecord> {
  const { array, list, parsed } = dialect
  const newest = `SELECT task, at FROM ${produced.path} WHERE produced_task.instance = instance.instance_id
    ORDER BY at DESC LIMIT ${MAX_PRODUCER_TASKS}`
  const called = `SELECT ${list}(${array}(listed.at, ${tasks.selected()})) FROM (${newest}) listed
    CROSS JOIN ${tasks.path} WHERE task.id = listed.task AND ${ALL_PARTITIONS} > 0`
  return {
    ...rowsOf(instances),
    selected: `${instances.selected()}, (${called})`,
    read: (values) => ({
      ...instanceRecord(instances.read(values)),
      tasks: listIn<[number, ...unknown[]]>(parsed(values.at(-1)))
        .map(([at, ...row]) => producedTask(tasks.read(row), at))
        .sort((a, b) => b.lastCallBackAt - a.lastCallBackAt),
    }),
  }
}

/** Instances seen since a time, or lost. Rows of inactive ones must not be read. */
function activeNames({ instances }: SqlTables): Query<string> {
  const seen = (rest: string) =>
    `SELECT * FROM (SELECT instance_id AS name FROM ${instances.path} WHERE ${rest} LIMIT ?2 + 0) listed`
  return {
    selected: 'name',
    from: `(${seen('last_seen_at >= ?1')} UNION ${seen('last_seen_at < lost_unless_seen_since')}) active LIMIT ?2 + 0`,
    read: ([name]) => name as string,
  }
}
