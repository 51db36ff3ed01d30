import type { InstanceRole, InstanceTotals } from '@baton/protocol'
import type { StoredInstance } from '../handoff/archived.ts'
import type { Heartbeat } from '../handoff/heartbeats.ts'
import { totalOf } from '../handoff/rules/task.ts'
import type { StoredTask } from '../handoff/stored.ts'
import {
  addTotals,
  type InstanceRecord,
  noTotals,
  type ProducedTaskDetails,
} from '../handoff/views/queries.ts'
import type { Tables } from './tables.ts'

/** The row of an instance that may not have one yet. */
export const seenInstance = (
  { instanceId, role, at }: { readonly instanceId: string; readonly role: InstanceRole; readonly at: number },
  totals: InstanceTotals = noTotals(),
  expectedAt: number | null = null,
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
  expectedAt,
  pausedAt: null,
})

/** Rows of instances are written in this order, so that concurrent transactions do not deadlock. */
export const byName = (a: StoredInstance, b: StoredInstance): number => (a.instanceId < b.instanceId ? -1 : 1)

/** One row for each instance: PostgreSQL cannot write a row twice in one statement. */
export function heartbeatRows(heartbeats: readonly Heartbeat[], now: number): StoredInstance[] {
  const rows = new Map<string, StoredInstance>()
  for (const { instanceId, role, totals: added, seenMillisAgo, node } of heartbeats) {
    const before = rows.get(instanceId)
    const totals = totalsOf(before)
    addTotals(totals, added)
    rows.set(instanceId, {
      instanceId,
      role,
      firstSeenAt: Math.min(now - seenMillisAgo.first, before?.firstSeenAt ?? Number.POSITIVE_INFINITY),
      lastSeenAt: Math.max(now - seenMillisAgo.last, before?.lastSeenAt ?? 0),
      version: node?.version ?? null,
      startedAt: node?.startedAt ?? null,
      draining: node?.draining ?? false,
      load: node?.load ?? null,
      ...totals,
      expectedAt: null,
      pausedAt: null,
    })
  }
  return [...rows.values()].sort(byName)
}

const totalFields = Object.keys(noTotals()) as (keyof InstanceTotals)[]

const totalsOf = (row: StoredInstance | undefined): InstanceTotals =>
  row === undefined
    ? noTotals()
    : (Object.fromEntries(totalFields.map((field) => [field, row[field]])) as unknown as InstanceTotals)

/** In SQL: adds totals to the stored ones. When an instance was last seen comes from heartbeats. */
export const addTotalsTo = (tables: Tables): string =>
  `ON CONFLICT (instance_id) DO UPDATE SET ${addedTotals(tables)},
    expected_at = CASE WHEN excluded.expected_at > coalesce(instance.expected_at, 0)
      THEN excluded.expected_at ELSE instance.expected_at END`

const addedTotals = ({ dialect, instances }: Tables): string =>
  instances
    .only(...totalFields)
    .names.map(
      (name) => `${name} = ${dialect.least}(instance.${name} + excluded.${name}, ${Number.MAX_SAFE_INTEGER})`,
    )
    .join(', ')

/** In SQL: a client uses the name of a known node. Its totals are added; the node's record stays as it is. */
const TAKES_A_NODES_NAME = 'excluded.started_at IS NULL AND instance.started_at IS NOT NULL'

/**
 * In SQL: records a heartbeat; `now` is the parameter with the time. Another node may have seen the instance
 * later and written so earlier. A time in the future, from before the clock was set back, does not count.
 */
export function recordHeartbeat(tables: Tables, now: string): string {
  const { least, greatest } = tables.dialect
  const unlessTaken = (column: string, value: string) =>
    `${column} = CASE WHEN ${TAKES_A_NODES_NAME} THEN instance.${column} ELSE ${value} END`
  const identity = ['role', 'version', 'started_at', 'draining', 'load']
  return `ON CONFLICT (instance_id) DO UPDATE SET
    ${unlessTaken('last_seen_at', `${greatest}(excluded.last_seen_at, ${least}(instance.last_seen_at, ${now}))`)},
    ${identity.map((column) => unlessTaken(column, `excluded.${column}`)).join(', ')},
    ${addedTotals(tables)}`
}

export function instanceRecord(row: StoredInstance): InstanceRecord {
  const { instanceId, role, firstSeenAt, lastSeenAt, version, startedAt, draining, load } = row
  return {
    instanceId,
    role,
    firstSeenAt,
    lastSeenAt,
    totals: totalsOf(row),
    expectedAt: row.expectedAt,
    pausedAt: row.pausedAt,
    node: startedAt === null ? null : { version: version ?? '', startedAt, draining, load },
  }
}

export const producedTask = (
  { taskId, state, partitions, records }: StoredTask,
  lastCallBackAt: number,
): ProducedTaskDetails => ({
  taskId,
  state,
  lastCallBackAt,
  partitions: { total: totalOf(partitions), done: partitions.done },
  records: { total: totalOf(records), done: records.done },
})
