import type { Disk } from '../../src/handoff/disk.ts'

const waiting = { lane: 1, after: { dueAt: 1, id: 1 }, upTo: 9, limit: 5 }
const rows = { lane: 1, tail: 9, afterIndex: -1, limit: 5 }
const history = { task: 1, step: 'hour' as const, from: 0, to: 9, limit: 5 }
const deliveries = { subscription: 's', after: 5, newestFirst: false, ofTask: null, limit: 5 }

/** Everything that a disk reads. */
export const everyRead: readonly (readonly [what: string, read: (disk: Disk) => Promise<unknown>])[] = [
  ['open tasks', (disk) => disk.openTasks(0, 5)],
  ['open lanes', (disk) => disk.lanesWithWork(0, 5)],
  ['leases', (disk) => disk.leases({ dueAt: 1, id: 1 }, 5)],
  ['levels', (disk) => disk.levels()],
  ['settings of tables', (disk) => disk.tableSettings()],
  ['tasks by name', (disk) => disk.tasksNamed(['a'])],
  ['tasks by id', (disk) => disk.tasksById([1])],
  ['lanes by id', (disk) => disk.lanesById([1])],
  ['lanes of a task', (disk) => disk.lanesOf(1, [0])],
  ...(['any', 'parked', 'rows'] as const).map(
    (having) =>
      [
        `the next lanes of a task: ${having}`,
        (disk: Disk) => disk.lanesFrom({ task: 1, from: 0, having, limit: 5 }),
      ] as const,
  ),
  ['partitions by id', (disk) => disk.partitionsById([1])],
  ['partitions by index', (disk) => disk.partitionsNamed([{ lane: 1, indexes: [1] }])],
  ['rows', (disk) => disk.rows([{ ...rows, state: null }])],
  ['rows in a state', (disk) => disk.rows([{ ...rows, state: 'ready' }])],
  ['begun rows', (disk) => disk.rows([{ ...rows, state: 'begun' }])],
  ['parked rows', (disk) => disk.rows([{ ...rows, state: 'parked' }])],
  ['rows that failed', (disk) => disk.rows([{ ...rows, state: null, failure: 'a' }])],
  ['rows in a state that failed', (disk) => disk.rows([{ ...rows, state: 'ready', failure: 'a' }])],
  ['rows parked as', (disk) => disk.rows([{ ...rows, state: 'parked', failure: 'a' }])],
  ['what arrived', (disk) => disk.waiting([{ ...waiting, returned: false }])],
  ['what came back', (disk) => disk.waiting([{ ...waiting, returned: true }])],
  ['what arrived of a table', (disk) => disk.waiting([{ ...waiting, returned: false, table: 'a' }])],
  ['what came back of a table', (disk) => disk.waiting([{ ...waiting, returned: true, table: 'a' }])],
  ['checkpoints', (disk) => disk.checkpoints([1])],
  ['keys', (disk) => disk.keys(['k'])],
  ['due back-offs', (disk) => disk.dueBackoffs(1, 5)],
  ['known', (disk) => disk.known([{ lane: 1, tail: 9, indexes: [1, 2] }])],
  ['rows that are done', (disk) => disk.doneRows(1)],
  ['due keys', (disk) => disk.dueKeys(1, 5)],
  ['the task to purge', (disk) => disk.purgeable(1)],
  ['a task', (disk) => disk.taskDetail('a')],
  ['all tasks', (disk) => disk.taskPage({ before: 9, limit: 5, which: 'all' })],
  ['tasks with parked', (disk) => disk.taskPage({ before: 9, limit: 5, which: 'parked' })],
  ['tasks in a state', (disk) => disk.taskPage({ before: 9, limit: 5, which: { state: 'open' } })],
  ['summaries', (disk) => disk.tasksWithLane([1, 2])],
  ['tasks with tables', (disk) => disk.tasksWithTables([1, 2], ['results.a'])],
  ['the history of a task', (disk) => disk.throughput({ ...history, byLevel: false })],
  ['the history by level', (disk) => disk.throughput({ ...history, byLevel: true })],
  [
    'history that is too old',
    (disk) => disk.forgetThroughput({ before: { minute: 1, hour: 1 }, most: 5, limit: 5 }),
  ],
  ['the audit', (disk) => disk.audited({ taskId: null, name: null, before: 9, limit: 5 })],
  ['the audit of a task', (disk) => disk.audited({ taskId: 'a', name: null, before: 9, limit: 5 })],
  ['the audit by name', (disk) => disk.audited({ taskId: null, name: 'n', before: 9, limit: 5 })],
  ['the audit of a task by name', (disk) => disk.audited({ taskId: 'a', name: 'n', before: 9, limit: 5 })],
  ['old records of the audit', (disk) => disk.forgetAudit({ before: 1, most: 5, limit: 5 })],
  [
    'the rows of a lane, by cell',
    (disk) => disk.countCells({ lane: 1, tail: 9, by: { kind: 'rank', width: 4, limit: 100 } }),
  ],
  [
    'some rows of each cell',
    (disk) => disk.countCells({ lane: 1, tail: 2000, by: { kind: 'index', cells: 10, each: 5 } }),
  ],
  ['an instance', (disk) => disk.instance('a')],
  ['instances by name', (disk) => disk.instances({ names: ['a'] })],
  [
    'the next instances',
    (disk) => disk.instances({ sort: 'name', after: { value: 0, name: 'm' }, limit: 5 }),
  ],
  ['the last seen instances', (disk) => disk.instances({ sort: 'lastSeenAt', after: null, limit: 5 })],
  ['paused instances', (disk) => disk.pausedInstances()],
  ['active instances', (disk) => disk.activeInstances(100, 5)],
  [
    'instances to forget',
    (disk) => disk.forgetInstances({ unseenSince: 1, endedSince: 1, holders: new Set(), most: 5, limit: 5 }),
  ],
  ['subscriptions', (disk) => disk.outbox.subscriptions()],
  ['deliveries', (disk) => disk.outbox.deliveries({ ...deliveries, pending: false })],
  [
    'the newest deliveries',
    (disk) => disk.outbox.deliveries({ ...deliveries, pending: false, newestFirst: true }),
  ],
  ['pending deliveries', (disk) => disk.outbox.deliveries({ ...deliveries, pending: true })],
  [
    'pending deliveries of a task',
    (disk) => disk.outbox.deliveries({ ...deliveries, pending: true, ofTask: { taskId: 'a', upTo: 9 } }),
  ],
  ['backlogs', (disk) => disk.outbox.backlogs(['s'])],
]
