import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { stuckTasks } from '../../src/store/postgres/migrations/0010-stuck-tasks.ts'
import { migrations } from '../../src/store/postgres/migrations/index.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { Driver, nameOf } from './conformance/driver.ts'
import { HOUR, TestClock, testPolicy } from './conformance/harness.ts'
import { leaveStuckTasks, stalledOf } from './support/stuck-tasks.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.dispose())

/** A task as the second version wrote it: partitions of every state, a place in `ready` that is stray, and a tripwire. */
const SECOND_VERSION = `
INSERT INTO baton.task (task_id, state, level_barrier, first_call_back_at, last_call_back_at, ready_partitions, ready_records,
  held_partitions, held_records, leased_partitions, leased_records, delayed_partitions, delayed_records, parked_partitions,
  parked_records, done_partitions, done_records)
  VALUES ('a', 'open', false, 1, 1, 4, 40, 3, 30, 2, 20, 1, 10, 1, 10, 2, 20);
INSERT INTO baton.compute_table (name) VALUES ('s.t');
INSERT INTO baton.lane (task, level, finish, ready_partitions, ready_records, held_partitions, held_records, leased_partitions,
  leased_records, delayed_partitions, delayed_records, parked_partitions, parked_records, done_partitions, done_records)
  SELECT task, level, 100, ready_partitions, ready_records, held_partitions, held_records, leased_partitions, leased_records,
    delayed_partitions, delayed_records, parked_partitions, parked_records, done_partitions, done_records
  FROM (SELECT t.*, t.id AS task, 0 AS level FROM baton.task t) t;
INSERT INTO baton.lane_range SELECT id, 0, 12 FROM baton.lane;
INSERT INTO baton.partition (lane, idx, level, state, parked, rank, fresh, refill, due_at, term, secret, outcome, attempts,
  record_count, compute_table, called_back_at)
  SELECT l.id, idx, 0, state, state = 'parked', rank, fresh, refill, due_at, term, secret, outcome, attempts, 10, c.id, 1
  FROM baton.lane l, baton.compute_table c, (VALUES
    (0, 'ready', 10, true, false, NULL, 0, '', NULL, 0), (1, 'ready', 20, true, true, NULL, 0, '', NULL, 0),
    (2, 'ready', 30, true, false, NULL, 0, '', NULL, 0), (3, 'ready', 15, false, false, NULL, 1, 'abcdefghijklmnop', 'expired', 1),
    (4, 'held', NULL, true, false, NULL, 0, '', NULL, 0), (5, 'held', NULL, true, false, NULL, 0, '', NULL, 0),
    (6, 'held', NULL, true, false, NULL, 0, '', NULL, 0),
    (7, 'leased', 1, true, false, 1780000060000, 1, 'abcdefghijklmnop', NULL, 0),
    (8, 'leased', 2, true, false, 1780000060000, 1, 'abcdefghijklmnop', NULL, 0),
    (9, 'delayed', NULL, false, false, 1780000060000, 1, 'abcdefghijklmnop', 'failed', 1),
    (10, 'parked', NULL, false, false, NULL, 1, 'abcdefghijklmnop', 'failed', 3),
    (11, 'done', 3, true, false, 5, 1, 'abcdefghijklmnop', 'done', 1), (12, 'done', 4, true, true, 5, 1, 'abcdefghijklmnop', 'done', 1)
  ) AS n (idx, state, rank, fresh, refill, due_at, term, secret, outcome, attempts) ORDER BY idx;
INSERT INTO baton.ready SELECT p.level, coalesce(p.rank, 0), p.id, p.lane, l.task
  FROM baton.partition p JOIN baton.lane l ON l.id = p.lane WHERE p.state = 'ready' OR p.idx = 11;
INSERT INTO baton.held SELECT lane, id FROM baton.partition WHERE state = 'held';
INSERT INTO baton.due SELECT state = 'delayed', due_at, id, holder FROM baton.partition WHERE state IN ('leased', 'delayed');
INSERT INTO baton.pull_key (key, leases, forget_at) VALUES
  ('k', '{9-1-abcdefghijklmnop,8-1-abcdefghijklmnop}', 9e15), ('l', '{2n9c-1-abcdefghijklmnop}', 9e15);
`

test('a database of the second version goes on where it was', async () => {
  const { name, url } = await server.createDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('CREATE SCHEMA baton; CREATE TABLE baton.schema_version (version integer NOT NULL)')
  for (const migration of migrations.slice(0, 2)) await client.query(migration)
  await client.query('INSERT INTO baton.schema_version VALUES (2)')
  await client.query(SECOND_VERSION)
  await client.end()

  const clock = new TestClock()
  const store = await openPostgresStore({ url, policy: testPolicy, clock: clock.now })
  const driver = new Driver({ store, reopen: async () => {}, dispose: async () => {} }, clock)
  expect(await store.audit()).toEqual([])
  const [version] = await server.query('SELECT version FROM baton.schema_version', name)
  expect(version).toEqual({ version: migrations.length })

  // What a key was given before is what its repeat is given, in the order that is kept with the key.
  const repeat = await driver.pull({ batch: 4, key: 'k' })
  expect(repeat.partitions.map(({ lease }) => lease?.id)).toEqual([
    '9-1-abcdefghijklmnop',
    '8-1-abcdefghijklmnop',
  ])
  const keys = await server.query('SELECT key, partitions, secrets FROM baton.pull_key ORDER BY key', name)
  expect(keys).toMatchObject([
    { key: 'k', partitions: ['9', '8'] },
    { key: 'l', partitions: [String(Number.parseInt('2n9c', 36))], secrets: ['abcdefghijklmnop'] },
  ])

  // In the order of the ranks they had; the one that was given back goes between the first two.
  const { partitions } = await driver.pull({ batch: 4 })
  expect(partitions.map(nameOf)).toEqual(['a-0-0', 'a-0-3', 'a-0-1', 'a-0-2'])
  for (const { lease } of partitions) expect(await driver.settle(lease?.id ?? '')).toBeNull()
  // The tripwire was among them, so those behind the window have moved up.
  expect((await driver.pull({ batch: 9 })).partitions.map(nameOf)).toEqual(['a-0-4', 'a-0-5', 'a-0-6'])
  expect(await driver.settle('8-1-abcdefghijklmnop')).toBeNull()
  await driver.pass(HOUR)
  await driver.pass(HOUR)
  expect((await driver.pull({ batch: 9 })).partitions.map(nameOf).toSorted()).toEqual(
    ['a-0-4', 'a-0-5', 'a-0-6', 'a-0-8', 'a-0-9'].toSorted(),
  )
  expect((await driver.task('a')).facts.partitions).toMatchObject({ done: 7, leased: 5, parked: 1 })
  expect(await store.audit()).toEqual([])
  await store.close()
})

test('a task that only an operator can move is stalled from then on, others are as they were', async () => {
  const { name, url } = await server.createDatabase()
  const clock = new TestClock()
  const open = () =>
    openPostgresStore({ url, policy: { ...testPolicy, levelBarrier: true }, clock: clock.now })
  const before = await open()
  await leaveStuckTasks(new Driver({ store: before, reopen: async () => {}, dispose: async () => {} }, clock))
  await before.close()
  await server.query("UPDATE baton.task SET state = 'open'", name)
  // By itself: whatever comes after it would not stand being done twice.
  await server.query(stuckTasks, name)
  const store = await open()
  expect(await stalledOf(store)).toEqual(['stuck'])
  expect(await store.audit()).toEqual([])
  await store.close()
})
