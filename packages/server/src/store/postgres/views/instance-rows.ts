import { type InstanceTotals, MAX_PRODUCER_TASKS } from '@baton/protocol'
import {
  type InstancePage,
  type InstanceQuery,
  type InstanceRecord,
  noTotals,
  producedTask,
} from '../../../handoff/shown/instance-record.ts'
import type { Sighting } from '../../../handoff/sightings.ts'
import { readTask, taskColumns } from '../rows/entries.ts'
import { type Row, statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'

/** The columns of the totals, by their names in the core. */
const totalColumns = {
  pulls: 'pulls',
  partitions: 'partitions',
  records: 'records',
  done: 'done',
  failed: 'failed',
  released: 'released',
  callBacks: 'call_backs',
  calledBack: 'called_back',
} as const satisfies Record<keyof InstanceTotals, string>
const totals = Object.entries(totalColumns) as [keyof InstanceTotals, string][]
const columns = totals.map(([, column]) => column)

const identity = ['role', 'version', 'started_at', 'draining']
/** In SQL: a client says that it is what is known as a node. What it does counts; the node stays what it is. */
const TAKES_A_NODES_NAME = 'excluded.started_at IS NULL AND instance.started_at IS NOT NULL'

/**
 * Another node may have seen it later and said so earlier. One that was seen in the future, before the clock was set back, was
 * not.
 */
const LAST_SEEN = 'greatest(excluded.last_seen_at, least(instance.last_seen_at, $2))'

/** Sightings say in the columns of times how long ago it was. In the order of their names: nodes that write the same clients down do not wait in a circle. */
const save = statement(
  'record-sightings',
  `INSERT INTO baton.instance
     (instance_id, role, first_seen_at, last_seen_at, version, started_at, draining, ${columns.join(', ')})
   SELECT instance_id, role, $2 - first_seen_at, $2 - last_seen_at, version, started_at, coalesce(draining, false), ${columns.join(', ')}
   FROM json_populate_recordset(NULL::baton.instance, $1) ORDER BY instance_id
   ON CONFLICT (instance_id) DO UPDATE SET
     last_seen_at = CASE WHEN ${TAKES_A_NODES_NAME} THEN instance.last_seen_at ELSE ${LAST_SEEN} END,
     ${identity.map((column) => `${column} = CASE WHEN ${TAKES_A_NODES_NAME} THEN instance.${column} ELSE excluded.${column} END`).join(', ')},
     ${columns.map((column) => `${column} = least(instance.${column} + excluded.${column}, ${Number.MAX_SAFE_INTEGER})`).join(', ')}`,
)
const byName = statement('instance', 'SELECT * FROM baton.instance WHERE instance_id = $1')
const list = statement(
  'instances',
  'SELECT * FROM baton.instance WHERE instance_id > $1 ORDER BY instance_id LIMIT $2',
)
/** Reads the running leases alone: its size is the number of leases, not of partitions. */
const leases = statement(
  'leases-of-instances',
  `SELECT p.holder, count(*) AS leases FROM (
     SELECT unnest(ids) AS id, number FROM baton.due WHERE NOT delayed AND due_at > $1 AND holders && $2::bigint[] OFFSET 0
   ) q CROSS JOIN LATERAL (
     SELECT holder, lane FROM baton.partition
     WHERE id = q.id AND state = 'leased' AND due_with = q.number AND holder = ANY ($2::bigint[]) OFFSET 0
   ) p
   CROSS JOIN LATERAL (SELECT task FROM baton.lane WHERE id = p.lane OFFSET 0) l
   CROSS JOIN LATERAL (SELECT FROM baton.task WHERE id = l.task AND NOT cancelled OFFSET 0) t
   GROUP BY p.holder`,
)
const producedTasks = statement(
  'produced-tasks',
  `SELECT ${taskColumns('t')}, p.instance AS produced_by, p.last_call_back_at AS produced_at
   FROM unnest($1::bigint[]) AS wanted (instance) CROSS JOIN LATERAL
     (SELECT * FROM baton.produced_task WHERE instance = wanted.instance
      ORDER BY last_call_back_at DESC LIMIT ${MAX_PRODUCER_TASKS}) p
   JOIN baton.task t ON t.id = p.task
   ORDER BY p.last_call_back_at DESC`,
)

/** Several sightings of one instance come to one: a statement cannot write a row twice. */
export async function recordSightings(tx: Transaction, sightings: readonly Sighting[]): Promise<void> {
  const rows = new Map<string, Record<string, unknown>>()
  for (const {
    instanceId,
    role,
    totals: increments,
    seenMillisAgo: { first, last },
    node,
  } of sightings) {
    const before = rows.get(instanceId)
    rows.set(instanceId, {
      instance_id: instanceId,
      role,
      first_seen_at: Math.max(first, (before?.['first_seen_at'] as number | undefined) ?? first),
      last_seen_at: Math.min(last, (before?.['last_seen_at'] as number | undefined) ?? last),
      version: node?.version ?? null,
      started_at: node?.startedAt ?? null,
      draining: node?.draining ?? false,
      ...Object.fromEntries(
        totals.map(([name, column]) => [
          column,
          increments[name] + ((before?.[column] as number | undefined) ?? 0),
        ]),
      ),
    })
  }
  if (rows.size > 0) await tx.write(save, [JSON.stringify([...rows.values()]), await tx.now()])
}

export async function instanceRecord(tx: Transaction, instanceId: string): Promise<InstanceRecord | null> {
  const [record] = await records(tx, await tx.run(byName, [instanceId]))
  return record ?? null
}

/** One more than asked for tells whether there is a next page. */
export async function instancePage(tx: Transaction, { after, limit }: InstanceQuery): Promise<InstancePage> {
  const rows = await tx.run(list, [after ?? '', limit + 1])
  const instances = await records(tx, rows.slice(0, limit))
  const last = rows.length > limit ? instances.at(-1) : undefined
  return { instances, next: last?.instanceId ?? null }
}

async function records(tx: Transaction, rows: readonly Row[]): Promise<InstanceRecord[]> {
  if (rows.length === 0) return []
  const now = await tx.now()
  const ids = rows.map((row) => row['id'])
  const [held, produced] = await Promise.all([tx.run(leases, [now, ids]), tx.run(producedTasks, [ids])])
  const heldBy = new Map(held.map((row) => [row['holder'], row['leases'] as number]))
  const producedBy = Map.groupBy(produced, (row) => row['produced_by'])
  return rows.map((row) => ({
    instanceId: row['instance_id'] as string,
    role: row['role'] as InstanceRecord['role'],
    firstSeenAt: row['first_seen_at'] as number,
    lastSeenAt: row['last_seen_at'] as number,
    totals: readTotals(row),
    leases: heldBy.get(row['id']) ?? 0,
    node:
      row['started_at'] === null
        ? null
        : {
            version: row['version'] as string,
            startedAt: row['started_at'] as number,
            draining: row['draining'] as boolean,
          },
    now,
    tasks: (producedBy.get(row['id']) ?? []).map((task) =>
      producedTask(readTask(task), task['produced_at'] as number),
    ),
  }))
}

function readTotals(row: Row): InstanceTotals {
  const read = noTotals()
  for (const [name, column] of totals) read[name] = row[column] as number
  return read
}
