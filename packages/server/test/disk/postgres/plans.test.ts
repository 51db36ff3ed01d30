import { beforeAll, describe, expect, test } from 'vitest'
import { knownStatement, unstageStatement } from '../../../src/disk/postgres/append.ts'
import { countCellsStatement } from '../../../src/disk/postgres/cells.ts'
import { flushStatements } from '../../../src/disk/postgres/flush.ts'
import {
  activeInstancesStatement,
  instanceStatement,
  instancesStatement,
} from '../../../src/disk/postgres/instance-rows.ts'
import { rowFences } from '../../../src/disk/postgres/leader-row.ts'
import { openPostgresDisk } from '../../../src/disk/postgres/postgres-disk.ts'
import {
  leasesStatement,
  lookUpStatement,
  queries,
  rowsStatement,
  selectStatement,
  waitingStatement,
} from '../../../src/disk/postgres/reads.ts'
import { BEGIN_READING, type Statement } from '../../../src/disk/postgres/session/connection.ts'
import { doneRowsStatement, tasksWithTablesStatement } from '../../../src/disk/postgres/task-views.ts'
import { forgetThroughputStatement, throughputStatement } from '../../../src/disk/postgres/throughput-rows.ts'
import { notAttempted } from '../../../src/handoff/outbox.ts'
import { untouched } from '../../../src/handoff/partition.ts'
import { lane, noRowChanges, row, task } from './samples.ts'
import { diskDatabases } from './support.ts'

const databases = diskDatabases()
let explain: (statement: Statement) => Promise<string>

beforeAll(async () => {
  const { url, name } = await databases.create()
  const disk = await openPostgresDisk({ url, node: { nodeId: 'node', url: null } })
  await disk.open()
  await disk.stage(Array.from({ length: 2000 }, (_, at) => row(at + 1, { lane: 1 + (at % 40) })))
  await disk.close()
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

const rowChanges = {
  ...noRowChanges(),
  tasks: new Map([[1, task(1)]]),
  lanes: new Map([[1, lane(1)]]),
  levels: new Map([[0, { level: 0, virtual: 1n, served: 2n }]]),
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
  pace: new Map([
    ['1:20', { task: 1, second: 20, partitions: 1, records: 1 }],
    ['2', null],
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

const waiting = { lane: 1, after: { dueAt: 0, id: 0 }, upTo: 9, limit: 5 }

const rowsOf = (state: 'parked' | null) => ({ lane: 1, tail: 9, state, afterIndex: -1, limit: 5 })

const history = { task: 1, step: 'hour' as const, from: 0, to: 9, byLevel: false, limit: 5 }

/** The statements, and the indexes that they have to use where another one would also work. */
const statements: readonly (readonly [string, Statement | null, ...string[]])[] = [
  ['open tasks', selectStatement(queries.openTasks, [0, 5]), 'task_open'],
  ['open lanes', selectStatement(queries.openLanes, [0, 5]), 'lane_open'],
  ['leases', leasesStatement({ dueAt: 0, id: 0 }, 5), 'partition_leased'],
  ['tasks by name', lookUpStatement(queries.taskNamed, [['a']]), 'task_task_id_key'],
  ['tasks by id', lookUpStatement(queries.task, [[1]])],
  ['lanes by id', lookUpStatement(queries.lane, [[1]]), 'lane_pkey', 'lane_table_pkey'],
  ['lanes of a task', lookUpStatement(queries.laneOf, [[1, 0]]), 'lane_task_level_key'],
  ...(['any', 'parked', 'rows'] as const).map(
    (having) =>
      [
        `the next lanes of a task: ${having}`,
        selectStatement(queries.lanesFrom[having], [1, 0, 5]),
        'lane_task_level_key',
      ] as const,
  ),
  ['partitions by id', lookUpStatement(queries.partition, [[1]]), 'partition_pkey'],
  ['partitions by name', lookUpStatement(queries.partitionNamed, [[1, 1]]), 'partition_by_index'],
  ['rows', rowsStatement([rowsOf(null)]), 'partition_by_index'],
  ['parked rows', rowsStatement([rowsOf('parked')]), 'partition_parked'],
  ['rows that failed', rowsStatement([{ ...rowsOf(null), failure: 'a' }]), 'partition_failed'],
  ['rows parked as', rowsStatement([{ ...rowsOf('parked'), failure: 'a' }]), 'partition_parked_as'],
  [
    'what waits',
    waitingStatement([
      { ...waiting, returned: false },
      { ...waiting, returned: true },
      { ...waiting, returned: false, table: 'a' },
      { ...waiting, returned: true, table: 'a' },
    ]),
    'partition_by_arrival',
    'partition_returned',
    'partition_of_table',
  ],
  ['keys', lookUpStatement(queries.key, [['k']]), 'pull_key_pkey'],
  ['due back-offs', selectStatement(queries.delayed, [10]), 'partition_delayed'],
  ['known', knownStatement([{ lane: 1, tail: 9, indexes: [1, 2] }]), 'partition_by_index', 'lane_range_pkey'],
  ['due keys', selectStatement(queries.dueKeys, [1, 10]), 'pull_key_to_forget'],
  ['a purge that has begun', selectStatement(queries.purgeBegun, []), 'task_purged'],
  ['the task to purge', selectStatement(queries.toPurge, [1]), 'task_to_purge'],
  ['tasks with reruns', selectStatement(queries.withReruns, [10]), 'task_with_work'],
  ['tasks with staged rows', selectStatement(queries.withStagedRows, []), 'task_with_work'],
  ['all tasks', selectStatement(queries.newest, [9, 5])],
  ['tasks with parked', selectStatement(queries.newestWithParked, [9, 5]), 'task_with_parked'],
  ['tasks in a state', selectStatement(queries.newestInState, ['open', 9, 5]), 'task_by_state'],
  ['summaries', lookUpStatement(queries.summary, [[1], [2]])],
  ['tasks with tables', tasksWithTablesStatement([1, 2], ['results.a']), 'task_table'],
  ['a task', lookUpStatement(queries.detail, [['a']]), 'partition_mismatch', 'task_table_order'],
  ['the lanes of a task, to add them up', doneRowsStatement(1), 'lane_task_level_key'],
  ['an instance', instanceStatement('a'), 'produced_task_newest'],
  [
    'instances',
    instancesStatement({ sort: 'name', after: { value: 0, name: 'm' }, limit: 5 }),
    'instance_pkey',
  ],
  ['active instances', activeInstancesStatement(100, 5), 'partition_leased_by', 'instance_pkey'],
  ['instances by name', instancesStatement({ names: ['a'] }), 'instance_pkey'],
  ['pending deliveries', selectStatement(queries.pending, ['s', 5, 5]), 'delivery_pending'],
  [
    'pending deliveries of a task',
    selectStatement(queries.pendingOfTask, ['s', 5, 9, 'a', 5]),
    'delivery_pending',
  ],
  ['deliveries', selectStatement(queries.deliveries, ['s', 5, 5]), 'delivery_pkey'],
  ['the newest deliveries', selectStatement(queries.newestDeliveries, ['s', 5, 5]), 'delivery_pkey'],
  ['the history of a task', throughputStatement(history), 'throughput_pkey'],
  ['the history by level', throughputStatement({ ...history, byLevel: true }), 'throughput_pkey'],
  [
    'history that is too old',
    forgetThroughputStatement({ before: { minute: 1, hour: 1 }, most: 5, limit: 5 }),
    'throughput_by_age',
  ],
  [
    'the rows of a lane, to count them by cell',
    countCellsStatement({ lane: 1, tail: 9, by: { kind: 'rank', width: 4, limit: 100 } }),
    'partition_by_index',
  ],
  [
    'some rows of each cell',
    countCellsStatement({ lane: 1, tail: 9, by: { kind: 'index', cells: 10, each: 5 } }),
    'partition_by_index',
    'partition_parked',
  ],
  ['unstage', unstageStatement({ first: 1, last: 2 }), 'partition_pkey'],
  ...flushStatements(rowChanges, 5000, 3).map(
    (statement) => [`flush: ${statement.text.trim().slice(0, 60)}`, statement] as const,
  ),
]

describe('the plan avoids reading a whole table', () => {
  // Two tables that always have one row.
  const ONE_ROW = /Seq Scan on (?:head|flushed)\b/g

  test.each(statements)('of %s', async (_, statement, ...indexes) => {
    const plan = await explain(statement as Statement)
    expect(plan.replaceAll(ONE_ROW, '')).not.toContain('Seq Scan')
    for (const index of indexes) expect(plan).toContain(index)
  })

  test('of the fences', async () => {
    for (const statement of rowFences({ leaderTerm: 't', last: 1, writes: 1 }))
      expect((await explain(statement)).replaceAll(ONE_ROW, '')).not.toContain('Seq Scan')
  })
})
