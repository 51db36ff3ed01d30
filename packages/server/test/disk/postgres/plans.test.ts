import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { unstageStatement } from '../../../src/disk/postgres/append.ts'
import { flushStatements } from '../../../src/disk/postgres/flush.ts'
import { rowFences } from '../../../src/disk/postgres/leader-row.ts'
import { openPostgresDisk } from '../../../src/disk/postgres/postgres-disk.ts'
import { BEGIN_READING, Connection, type Statement } from '../../../src/disk/postgres/session/connection.ts'
import type { SharedDisk } from '../../../src/handoff/disk.ts'
import { notAttempted } from '../../../src/handoff/outbox.ts'
import { untouched } from '../../../src/handoff/partition.ts'
import { everyRead } from '../every-read.ts'
import { lane, noRowChanges, row, task } from './samples.ts'
import { diskDatabases } from './support.ts'

const databases = diskDatabases()
let disk: SharedDisk
let explain: (statement: Statement) => Promise<string>

beforeAll(async () => {
  const { url, name } = await databases.create()
  disk = await openPostgresDisk({ url, node: { nodeId: 'node', url: '' } })
  await disk.open()
  await disk.stage(Array.from({ length: 2000 }, (_, at) => row(at + 1, { lane: 1 + (at % 40) })))
  await databases.server.query('ANALYZE', name)
  explain = async ({ text, values = [] }) => {
    const pg = await import('pg')
    const client = new pg.default.Client({ connectionString: url })
    await client.connect()
    try {
      await client.query(BEGIN_READING.replace('READ ONLY', 'READ WRITE'))
      const { rows } = await client.query(`EXPLAIN ${text}`, [...values])
      return rows.map((line: Record<string, unknown>) => line['QUERY PLAN']).join('\n')
    } finally {
      await client.end()
    }
  }
})

afterAll(() => disk.close())

const rowChanges = {
  ...noRowChanges(),
  tasks: new Map([[1, task(1)]]),
  lanes: new Map([[1, lane(1)]]),
  levels: new Map([[0, { level: 0, virtual: 1n, maxFinishTag: 2n }]]),
  throughput: new Map([
    ['a', { task: 1, step: 'hour' as const, at: 0, level: 0, partitions: 1, records: 1 }],
  ]),
  partitions: new Map([
    [1, { ...untouched() }],
    [2, null],
  ]),
  keys: new Map([
    ['k', { key: 'k', leases: [], forgetAt: 1 }],
    ['l', null],
  ]),
  ranges: [{ lane: 1, first: 1, last: 2 }],
  tables: new Map([[1, new Set(['t'])]]),
  produced: new Map([['1:p', { task: 1, instance: 'p', at: 1 }]]),
  instances: new Map([['p', { instanceId: 'p', role: 'producer' as const, at: 1 }]]),
  outbox: {
    subscriptions: new Map([['s', null]]),
    deliveries: [],
    changes: new Map([
      ['1:s', { subscription: 's', event: 1, progress: notAttempted('pending', 1) }],
      ['2:s', { subscription: 's', event: 2, progress: null }],
    ]),
  },
}

/** The indexes that reads have to use where another one would also work. */
const indexes: Readonly<Record<string, readonly string[]>> = {
  'open tasks': ['task_open'],
  'open lanes': ['lane_open'],
  leases: ['partition_leased'],
  'tasks by name': ['task_task_id_key'],
  'lanes by id': ['lane_pkey', 'lane_table_pkey'],
  'lanes of a task': ['lane_task_level_key'],
  'the next lanes of a task: any': ['lane_task_level_key'],
  'the next lanes of a task: parked': ['lane_task_level_key'],
  'the next lanes of a task: rows': ['lane_task_level_key'],
  'partitions by id': ['partition_pkey'],
  'partitions by index': ['partition_by_index'],
  rows: ['partition_by_index'],
  'begun rows': ['partition_begun'],
  'parked rows': ['partition_parked'],
  'rows that failed': ['partition_failed'],
  'rows parked as': ['partition_parked_as'],
  'what arrived': ['partition_by_arrival'],
  'what came back': ['partition_returned'],
  'what arrived of a table': ['partition_of_table'],
  'what came back of a table': ['partition_returned'],
  keys: ['pull_key_pkey'],
  'due back-offs': ['partition_delayed'],
  known: ['partition_by_index', 'lane_range_pkey'],
  'rows that are done': ['lane_task_level_key'],
  'leased or delayed': ['partition_leased', 'partition_delayed'],
  'due keys': ['pull_key_to_forget'],
  'the task to purge': ['task_purged', 'task_to_purge'],
  'a task': ['partition_mismatch', 'task_table_order'],
  'tasks with parked': ['task_with_parked'],
  'tasks in a state': ['task_by_state'],
  'tasks with tables': ['task_table'],
  'the history of a task': ['throughput_pkey'],
  'the history by level': ['throughput_pkey'],
  'history that is too old': ['throughput_by_age'],
  'the audit of a task': ['audit_of_task'],
  'the audit by name': ['audit_by_name'],
  'the rows of a lane, by cell': ['partition_by_index'],
  'some rows of each cell': ['partition_by_index', 'partition_parked'],
  'an instance': ['produced_task_newest'],
  'the next instances': ['instance_pkey'],
  deliveries: ['delivery_pkey'],
  'the newest deliveries': ['delivery_pkey'],
  'pending deliveries': ['delivery_pending'],
  'pending deliveries of a task': ['delivery_pending'],
  backlogs: ['delivery_pending'],
}

const writes: readonly (readonly [string, Statement])[] = [
  ['unstage', unstageStatement({ first: 1, last: 2 })],
  ...flushStatements(rowChanges, 5000, 3).map(
    (statement) => [`flush: ${statement.text.trim().slice(0, 60)}`, statement] as const,
  ),
]

describe('the plan avoids reading a whole table', () => {
  // Tables with one row, tables that are read as a whole, and instances, which have no index by time: each
  // heartbeat would write it.
  const ALLOWED = /Seq Scan on (?:head|flushed|level|table_settings|subscription|instance)\b/g

  test.each(everyRead)('of %s', async (what, read) => {
    const sent = vi.spyOn(Connection.prototype, 'transact')
    await read(disk)
    const statements = sent.mock.calls.flatMap(([, found]) => found)
    sent.mockRestore()
    expect(statements).not.toHaveLength(0)
    const plan = (await Promise.all(statements.map(explain))).join('\n')
    expect(plan.replaceAll(ALLOWED, '')).not.toContain('Seq Scan')
    for (const index of indexes[what] ?? []) expect(plan).toContain(index)
  })

  test.each(writes)('of %s', async (_, statement) => {
    expect((await explain(statement)).replaceAll(ALLOWED, '')).not.toContain('Seq Scan')
  })

  test('of the fences', async () => {
    for (const statement of rowFences({ term: 't', last: 1, writes: 1 }))
      expect((await explain(statement)).replaceAll(ALLOWED, '')).not.toContain('Seq Scan')
  })
})
